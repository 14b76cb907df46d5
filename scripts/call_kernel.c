/* Call one function of the kernels in a process of its own, possibly on an emulated processor: see try_kernels.py.
 *
 *   call_kernel LIBRARY CALL RESULT
 *
 * CALL has the name of the function, its arguments, and copies of the memory that they point to, each with its address in
 * the calling process. Words that are such an address become the address of the copy. RESULT gets the returned value and the
 * copies after the call. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t address, size, has_pointers;
    char *copy;
} Block;

typedef struct {
    char name[32];
    uint64_t arguments[9], n_blocks;
} Call;

static uint64_t moved(uint64_t word, const Block *blocks, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        if (word == blocks[i].address) return (uint64_t)(uintptr_t)blocks[i].copy;
    return word;
}

static void fail(const char *what) {
    fprintf(stderr, "call_kernel: %s\n", what);
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 4) fail("name the library, the call and the result");
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) fail(dlerror());
    FILE *in = fopen(argv[2], "rb"), *out = fopen(argv[3], "wb");
    Call call;
    if (!in || !out || fread(&call, sizeof(call), 1, in) != 1) fail("the call cannot be read");
    Block *blocks = calloc(call.n_blocks + 1, sizeof(Block));
    for (uint64_t i = 0; i < call.n_blocks; i++) {
        if (fread(&blocks[i], 3 * sizeof(uint64_t), 1, in) != 1) fail("the call is cut short");
        if (posix_memalign((void **)&blocks[i].copy, 64, blocks[i].size + 64)) fail("too little memory");
        if (fread(blocks[i].copy, 1, blocks[i].size, in) != blocks[i].size) fail("the call is cut short");
    }
    for (uint64_t i = 0; i < call.n_blocks; i++)
        for (uint64_t k = 0; blocks[i].has_pointers && k + 8 <= blocks[i].size; k += 8) {
            uint64_t word;
            memcpy(&word, blocks[i].copy + k, 8);
            word = moved(word, blocks, call.n_blocks);
            memcpy(blocks[i].copy + k, &word, 8);
        }
    uint64_t a[9];
    for (int i = 0; i < 9; i++) a[i] = moved(call.arguments[i], blocks, call.n_blocks);
    int64_t (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
    *(void **)&function = dlsym(library, call.name);
    if (!function) fail("there is no such function");
    int64_t returned = function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]);
    fwrite(&returned, sizeof(returned), 1, out);
    for (uint64_t i = 0; i < call.n_blocks; i++) fwrite(blocks[i].copy, 1, blocks[i].size, out);
    return fclose(out) ? 1 : 0;
}
