// In which order do the blocks of a GEMM visit the tiles of C? Block b writes b
// into order[m, n], for the tile (m, n) that it would compute. Tiles are
// visited in bands of GROUP rows, down each column of a band before the next
// column.
constexpr int GROUP = 4;

extern "C" __global__ void rasterise(int* order, int tiles_m, int tiles_n) {
    const int block = blockIdx.x;
#ifdef SOLUTION
    const int band = block / (GROUP * tiles_n);
    const int first_row = band * GROUP;
    const int rows =
        min(GROUP, tiles_m - first_row);  // the last band may be lower
    const int within = block - first_row * tiles_n;
    const int m = first_row + within % rows;
    const int n = within / rows;
#else
    // Your turn: this is plain row-major order.
    const int m = block / tiles_n;
    const int n = block % tiles_n;
#endif
    if (threadIdx.x == 0) order[m * tiles_n + n] = block;
}
