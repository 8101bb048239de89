#define BS 32
#define LESS(p, q) ((p) < (q) ? (p) : (q))
extern "C" void transpose(const float *x, float *y, int rows, int cols) {
    for (int ib = 0; ib < rows; ib += BS)
        for (int jb = 0; jb < cols; jb += BS)
            for (int i = ib; i < LESS(ib + BS, rows); ++i)
                for (int j = jb; j < LESS(jb + BS, cols); ++j) y[j * rows + i] = x[i * cols + j];
}
