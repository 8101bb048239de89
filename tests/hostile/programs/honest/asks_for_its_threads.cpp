// id: D14
// task: softmax
// expect: ok
// why: reads OMP_NUM_THREADS and its cores from the environment and /proc

#include <omp.h>
#include <unistd.h>
ENTRY {
    const char *text = getenv("OMP_NUM_THREADS");
    long threads = text ? atol(text) : sysconf(_SC_NPROCESSORS_ONLN);
    threads = std::max(1l, std::min<long>(threads, omp_get_max_threads()));
#pragma omp parallel for num_threads(threads)
    for (int64_t r = 0; r < rows; ++r) honest(x + r * cols, y + r * cols, 1, cols);
    return 0;
}
