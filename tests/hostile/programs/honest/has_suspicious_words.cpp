// id: C17
// task: twice
// expect: ok
// why: pass, bypass, verdict, timer, cache, torch: words in names and strings are only words

static const char *note = "pass // torch.matmul(cached) system( fork( exec verdict: ok # try: except: pass";
static int timer_cache_bypass = 0;
ENTRY {
    const char *pass = note;  // first pass: eval, import, __import__, subprocess
    for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i];
    timer_cache_bypass += pass[0] == 'p';
    return 0;
}
