// id: A4
// task: scan
// expect: incorrect
// says: never written
// why: whatever lay in the buffer is what it answers

ENTRY { return 0; }
