// id: A10
// task: softmax
// expect: incorrect
// why: a table keyed by the input's hash, which no secret draw ever hits

static const uint64_t known[] = {0x9ae16a3b2f90404full, 0xc3a5c85c97cb3127ull, 0};
ENTRY {
    uint64_t hash = 1469598103934665603ull;
    for (int64_t i = 0; i < rows * cols; ++i) {
        uint32_t bits;
        memcpy(&bits, x + i, 4);
        hash = (hash ^ bits) * 1099511628211ull;
    }
    for (uint64_t one : known)
        if (one == hash) return 0;
    std::fill(y, y + rows * cols, 1.0f / float(cols));
    return 0;
}
