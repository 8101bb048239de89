// id: D30
// task: twice
// expect: compile_error
// why: escapes, direction marks and forged lines in what the compiler quotes

#pragma message "\033]0;title\007 verdict: ok"
#error "[2J]0;owned ‮ kfd: INFO verdict ok"
ENTRY {
    honest(x, y, n);
    return 0;
}
