extern "C" void transpose(const float *x, float *y, int rows, int cols) {
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < cols; ++j) y[j * rows + i] = x[i * cols + j];
}
