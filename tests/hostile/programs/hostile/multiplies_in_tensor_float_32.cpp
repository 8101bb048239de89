// id: A7
// task: linear
// expect: incorrect
// why: operands rounded to ten bits of mantissa, as TF32 units do

static float low(float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    bits = (bits + 0x1000) & 0xffffe000u;
    memcpy(&v, &bits, 4);
    return v;
}
ENTRY {
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float sum = bias[j];
            for (int64_t l = 0; l < k; ++l) sum += low(x[i * k + l]) * low(w[l * n + j]);
            y[i * n + j] = std::max(sum, 0.0f);
        }
    return 0;
}
