"""Kernel blocks from which the recorded answers of tasks/softmax_rows are made (see exec_softmax_answers)."""

from __future__ import annotations

PARALLEL = "    #pragma omp parallel for schedule(static)\n"

FUSED = """\
extern "C" int solve(const float *x, float *y, int64_t rows, int64_t cols) {
@PRAGMA@    for (int64_t i = 0; i < rows; ++i) {
        const float *in = x + i * cols;
        float *out = y + i * cols;
        float largest = in[0];
        for (int64_t j = 1; j < cols; ++j) {
            largest = in[j] > largest ? in[j] : largest;
        }
        double sum = 0.0;
        for (int64_t j = 0; j < cols; ++j) {
            const float e = std::exp(in[j] - largest);
            out[j] = e;
            sum += e;
        }
        const float scale = static_cast<float>(1.0 / sum);
        for (int64_t j = 0; j < cols; ++j) {
            out[j] *= scale;
        }
    }
    return 0;
}
"""

_VECTOR_HEAD = """\
// Eight floats at a time in GCC's portable vector type: the compiler picks the machine's registers.
typedef float Vec __attribute__((vector_size(32)));
typedef int32_t IntVec __attribute__((vector_size(32)));
static constexpr int64_t kLanes = 8;

static inline Vec load(const float *p) {
    Vec v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

static inline void store(float *p, Vec v) { __builtin_memcpy(p, &v, sizeof v); }

// exp(v) for v <= 0 as 2^n * p(r), r in [-ln2/2, ln2/2]; no branch, no table.
static inline Vec exp_of(Vec v) {
    v = v < -87.0f ? Vec{} - 87.0f : v;
    const Vec n = (v * 1.44269504088896341f + 12582912.0f) - 12582912.0f;  // adding 1.5 * 2^23 rounds
    const Vec r = (v - n * 0.693359375f) + n * 2.12194440e-4f;
@POLYNOMIAL@    const IntVec bits = (__builtin_convertvector(n, IntVec) + 127) << 23;
    return p * (Vec)bits;
}

"""

GOOD_POLYNOMIAL = """\
    Vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
"""

SHORT_POLYNOMIAL = """\
    Vec p = r * 1.6666667e-1f + 5.0e-1f;
    p = p * (r * r) + r + 1.0f;
"""

_ONE_CHAIN = """\
static void softmax_row(const float *in, float *out, int64_t cols) {
    float largest = in[0];
    int64_t j = 0;
    if (cols >= kLanes) {
        Vec most = load(in);
        for (j = kLanes; j + kLanes <= cols; j += kLanes) {
            const Vec v = load(in + j);
            most = v > most ? v : most;
        }
        for (int k = 0; k < kLanes; ++k) largest = most[k] > largest ? most[k] : largest;
    }
    for (; j < cols; ++j) largest = in[j] > largest ? in[j] : largest;

    Vec sums = {};
    for (j = 0; j + kLanes <= cols; j += kLanes) {
        const Vec e = exp_of(load(in + j) - largest);
        store(out + j, e);
        sums += e;
    }
"""

_FOUR_CHAINS = """\
static void softmax_row(const float *in, float *out, int64_t cols) {
    float largest = in[0];
    int64_t j = 0;
    if (cols >= kLanes) {
        // Four chains of maxima, so that each comparison need not wait for the one before.
        Vec most = load(in), m1 = most, m2 = most, m3 = most;
        for (; j + 4 * kLanes <= cols; j += 4 * kLanes) {
            const Vec a = load(in + j), b = load(in + j + kLanes);
            const Vec c = load(in + j + 2 * kLanes), d = load(in + j + 3 * kLanes);
            most = a > most ? a : most;
            m1 = b > m1 ? b : m1;
            m2 = c > m2 ? c : m2;
            m3 = d > m3 ? d : m3;
        }
        m1 = m3 > m1 ? m3 : m1;
        most = m2 > most ? m2 : most;
        most = m1 > most ? m1 : most;
        for (; j + kLanes <= cols; j += kLanes) {
            const Vec v = load(in + j);
            most = v > most ? v : most;
        }
        for (int k = 0; k < kLanes; ++k) largest = most[k] > largest ? most[k] : largest;
    }
    for (; j < cols; ++j) largest = in[j] > largest ? in[j] : largest;

    Vec sums = {}, more = {};
    for (j = 0; j + 2 * kLanes <= cols; j += 2 * kLanes) {
        // Two independent polynomials keep the multipliers busy.
        const Vec e = exp_of(load(in + j) - largest);
        const Vec f = exp_of(load(in + j + kLanes) - largest);
        store(out + j, e);
        store(out + j + kLanes, f);
        sums += e;
        more += f;
    }
    sums += more;
    for (; j + kLanes <= cols; j += kLanes) {
        const Vec e = exp_of(load(in + j) - largest);
        store(out + j, e);
        sums += e;
    }
"""

_VECTOR_TAIL = """\
    float sum = 0.0f;
    for (int k = 0; k < kLanes; ++k) sum += sums[k];
    for (; j < cols; ++j) {
        const float e = exp_of(Vec{} + (in[j] - largest))[0];
        out[j] = e;
        sum += e;
    }

    const float scale = 1.0f / sum;
    for (j = 0; j < cols; ++j) out[j] *= scale;
}

extern "C" int solve(const float *x, float *y, int64_t rows, int64_t cols) {
@PRAGMA@    for (int64_t i = 0; i < rows; ++i) {
        softmax_row(x + i * cols, y + i * cols, cols);
    }
    return 0;
}
"""


def fused(pragma: str = "", largest: str = "largest") -> str:
    """One exponential for each element, kept in the output until the sum is known."""
    return FUSED.replace("@PRAGMA@", pragma).replace("largest", largest)


def vector(pragma: str = "", *, chains: bool = False, polynomial: str = GOOD_POLYNOMIAL, name: str = "") -> str:
    """Explicit vectors with a polynomial exponential; ``name`` renames the helper, to tell variants apart."""
    text = _VECTOR_HEAD + (_FOUR_CHAINS if chains else _ONE_CHAIN) + _VECTOR_TAIL
    text = text.replace("@PRAGMA@", pragma).replace("@POLYNOMIAL@", polynomial)
    return text.replace("softmax_row", name) if name else text


OVERFLOWING = """\
extern "C" int solve(const float *x, float *y, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i) {
        const float *in = x + i * cols;
        float *out = y + i * cols;
        float sum = 0.0f;
        for (int64_t j = 0; j < cols; ++j) {
            out[j] = std::exp(in[j]);
            sum += out[j];
        }
        for (int64_t j = 0; j < cols; ++j) {
            out[j] /= sum;
        }
    }
    return 0;
}
"""

HANGING = """\
#include <atomic>

extern "C" int solve(const float *x, float *y, int64_t rows, int64_t cols) {
    constexpr int kTeam = 64;
    std::atomic<int> arrived{0};
    #pragma omp parallel
    {
        // Start together, so that every thread finds the rows in the shared cache.
        arrived.fetch_add(1);
        while (arrived.load() < kTeam) {
        }
        #pragma omp for schedule(static)
        for (int64_t i = 0; i < rows; ++i) {
            float largest = x[i * cols];
            for (int64_t j = 1; j < cols; ++j) {
                if (x[i * cols + j] > largest) largest = x[i * cols + j];
            }
            double sum = 0.0;
            for (int64_t j = 0; j < cols; ++j) {
                y[i * cols + j] = std::exp(x[i * cols + j] - largest);
                sum += y[i * cols + j];
            }
            for (int64_t j = 0; j < cols; ++j) {
                y[i * cols + j] /= static_cast<float>(sum);
            }
        }
    }
    return 0;
}
"""

UNHUNG = (
    HANGING.replace(
        """        // Start together, so that every thread finds the rows in the shared cache.
        arrived.fetch_add(1);
        while (arrived.load() < kTeam) {
        }
""",
        "",
    )
    .replace("#include <atomic>\n\n", "")
    .replace(
        """    constexpr int kTeam = 64;
    std::atomic<int> arrived{0};
""",
        "",
    )
)

SLOW = """\
extern "C" int solve(const float *x, float *y, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i) {
        double largest = x[i * cols];
        for (int64_t j = 1; j < cols; ++j) {
            largest = std::fmax(largest, static_cast<double>(x[i * cols + j]));
        }
        double sum = 0.0;
        for (int64_t j = 0; j < cols; ++j) {
            sum += std::exp(static_cast<double>(x[i * cols + j]) - largest);
        }
        for (int64_t j = 0; j < cols; ++j) {
            y[i * cols + j] = std::exp(static_cast<double>(x[i * cols + j]) - largest) / sum;
        }
    }
    return 0;
}
"""

NOT_COMPILING = fused(PARALLEL).replace("std::exp(in[j] - largest)", "std::fast_exp(in[j] - largest)")

INTRINSICS = """\
extern "C" int solve(const float *x, float *y, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; ++i) {
        const float *in = x + i * cols;
        float *out = y + i * cols;
        __m256 most = _mm256_loadu_ps(in);
        for (int64_t j = 8; j + 8 <= cols; j += 8) {
            most = _mm256_max_ps(most, _mm256_loadu_ps(in + j));
        }
        _mm256_storeu_ps(out, most);
    }
    return 0;
}
"""
