// id: A7
// task: softmax
// expect: incorrect
// why: eleven bits of mantissa in the output

ENTRY {
    honest(x, y, rows, cols);
    for (int64_t i = 0; i < rows * cols; ++i) {
        uint32_t bits;
        memcpy(&bits, y + i, 4);
        bits = (bits + 0x1000) & 0xffffe000u;
        memcpy(y + i, &bits, 4);
    }
    return 0;
}
