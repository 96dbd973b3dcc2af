// Which kernels this processor can run, and how a call is cut into tiles.
#include <algorithm>

#include "kernels.h"

namespace lrn {

namespace baseline {
const std::vector<Kernels>& kernels();
const std::vector<AttentionKernels>& attention_kernels();
}  // namespace baseline
#ifdef LRN_X86
namespace avx2 {
const std::vector<Kernels>& kernels();
const std::vector<AttentionKernels>& attention_kernels();
}  // namespace avx2
namespace avx512 {
const std::vector<Kernels>& kernels();
const std::vector<AttentionKernels>& attention_kernels();
}  // namespace avx512
#endif

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
#ifdef LRN_X86
  __builtin_cpu_init();
  const auto has = [](auto... yes) { return (yes && ...); };
  const bool v3 = has(__builtin_cpu_supports("avx2"), __builtin_cpu_supports("fma"), __builtin_cpu_supports("bmi"),
                      __builtin_cpu_supports("bmi2"));
  if (v3 && has(__builtin_cpu_supports("avx512f"), __builtin_cpu_supports("avx512bw"),
                __builtin_cpu_supports("avx512cd"), __builtin_cpu_supports("avx512dq"),
                __builtin_cpu_supports("avx512vl"))) {
    sets.push_back({"avx512", &avx512::kernels(), &avx512::attention_kernels()});
  }
  if (v3) sets.push_back({"avx2", &avx2::kernels(), &avx2::attention_kernels()});
#endif
  sets.push_back({"baseline", &baseline::kernels(), &baseline::attention_kernels()});
  return sets;
}

const Kernels* find_kernels(const InstructionSet& set, std::string_view cell, Type type) {
  for (const Kernels& kernels : *set.kernels) {
    if (kernels.cell == cell && kernels.type == type) return &kernels;
  }
  return nullptr;
}

namespace {
int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
}  // namespace

void Problem::plan(int64_t threads) {
  const int64_t rows = std::max<int64_t>(1, batch), width = std::max<int64_t>(1, hidden);
  // Split columns only where they are too many for a tile, or the rows too few for the threads.
  const int64_t parts = std::max(divide_up(width, kTile), divide_up(threads, directions * rows));
  constexpr int64_t line = 16;  // keep threads off each other's cache lines
  tile_columns = std::min(kTile, divide_up(divide_up(width, parts), line) * line);
  column_tiles = divide_up(width, tile_columns);
  // Several tiles a thread, so that the last ones even out.
  const int64_t fair = directions * rows * column_tiles / (4 * threads);
  tile_rows = std::clamp<int64_t>(fair, 1, kTile / tile_columns);
  row_tiles = hidden == 0 ? 0 : divide_up(batch, tile_rows);
  interleave = std::clamp<int64_t>(threads, 1, std::max<int64_t>(1, row_tiles));
}

// As few tiles as keep all threads busy: more rows make better use of the matrix, up to what the cache holds.
void Problem::plan_whole_rows(int64_t threads) {
  constexpr int64_t most = 64;
  const int64_t each = divide_up(divide_up(directions * batch, threads), most);
  row_tiles = hidden == 0 ? 0 : std::min(batch, divide_up(threads * each, directions));
  column_tiles = 1;
}

}  // namespace lrn
