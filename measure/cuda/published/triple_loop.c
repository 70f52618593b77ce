// The triple loop of the CUDA GEMMS post's introduction, written anew for this book: C = A * B, float, row-major.
// triple_loop N THREADS prints the milliseconds of two orders of the loops: rows, columns, k, where k walks down a column
// of B; and rows, k, columns, where the innermost loop walks along rows of B and C. Built by: cc -O3 -fopenmp
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void rows_columns_k(const float* a, const float* b, float* c, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            float sum = 0.0f;
            for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
}

static void rows_k_columns(const float* a, const float* b, float* c, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        memset(c + i * n, 0, n * sizeof(float));
        for (int k = 0; k < n; ++k)
            for (int j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
}

static double milliseconds(void (*multiply)(const float*, const float*, float*, int), const float* a, const float* b,
                           float* c, int n) {
    const double start = omp_get_wtime();
    multiply(a, b, c, n);
    return 1e3 * (omp_get_wtime() - start);
}

int main(int count, char** words) {
    if (count != 3) return fprintf(stderr, "triple_loop N THREADS\n"), 2;
    const int n = atoi(words[1]);
    omp_set_num_threads(atoi(words[2]));
    float* a = malloc(3 * sizeof(float) * n * n);
    if (!a) return fprintf(stderr, "no memory\n"), 1;
    float *b = a + n * n, *c = b + n * n;
    for (int i = 0; i < 2 * n * n; ++i) a[i] = rand() / (float)RAND_MAX;
    memset(c, 0, n * n * sizeof(float));
    const double slow = milliseconds(rows_columns_k, a, b, c, n);
    const float first = c[n + 1];
    const double fast = milliseconds(rows_k_columns, a, b, c, n);
    const float off = c[n + 1] - first;
    printf("%.3f %.3f\n", slow, fast);
    return off * off < 1e-4f * first * first ? 0 : 1;
}
