// The core of the engine, free of torch: what one call is about, and the kernels by cell and type.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lrn {

// Elements of a tile at the most: what it carries from step to step stays in the L1 cache.
constexpr int64_t kTile = 1024;

enum class Type { f32, f64, bf16, f16 };

// A tensor seen as rows of `hidden` adjacent features. Strides count elements; unused ones are 0.
struct Grid {
  void* data = nullptr;
  int64_t time = 0, batch = 0, direction = 0, plane = 0;  // plane: gate, part of the state, or vector
};

struct Problem {
  int64_t steps = 0, batch = 0, directions = 1, hidden = 0;
  bool reverse[2] = {false, false};         // per direction
  const int64_t* lengths = nullptr;         // [batch] real steps of each row; null: all
  const int64_t* first_row = nullptr;       // [steps] packed: the row at which each step begins
  Grid reset;                               // bool: a new document begins here; data may be null
  Grid x, state, weight;                    // read by both passes
  Grid output, final;                       // written by forward
  Grid memory;                              // c of SRU; null for cells whose memory is their output
  Grid grad_output, grad_final;             // read by backward; either may be null
  Grid grad_x, grad_state, grad_weight;     // written by backward; grad_weight per row of the batch

  // Cells with a matrix inside: `weight` is the matrix, its rows and columns in `batch` and `plane`.
  Grid bias, q;                             // q = matrix * previous state + bias, if it is kept for backward
  Grid grad_q, previous;                    // written by backward: tokens row by row of the batch, no padding
  const int64_t* first_token = nullptr;     // [batch] where each row's begin there

  // A tile is the unit of parallel work: some rows and some columns of one direction, for all time.
  // Results do not depend on the tiling.
  int64_t tile_rows = 1, tile_columns = 1;
  int64_t row_tiles = 0, column_tiles = 0, interleave = 1;

  int64_t tiles() const { return directions * row_tiles * column_tiles; }
  void plan(int64_t threads);
  void plan_whole_rows(int64_t threads);
};

using Kernel = void (*)(const Problem&, int64_t first_tile, int64_t last_tile);

struct Kernels {
  std::string_view cell;
  Type type;
  int gates, parts, vectors;
  bool matrix;
  Kernel forward, backward;
};

// Additive attention of one step: the first `sequences` of a memory, each with a query of its own.
// Of grids, `batch` is the stride of rows; features are adjacent, those of a head beside each other.
struct Attention {
  int64_t sequences = 0, heads = 0, size = 0;  // size: features of a head
  int64_t longest = 0;
  const int64_t* starts = nullptr;             // [sequences + 1] rows of the memory at which sequences begin
  const void* score = nullptr;                 // [size]
  Grid query, keys, values;                    // read by both passes
  Grid context;                                // written by forward
  void* weights = nullptr;                     // [sequences, heads, longest] written by forward, read by backward
  Grid grad_context;                           // read by backward
  Grid grad_query, grad_score;                 // written by backward; grad_score [sequences, size]
  Grid grad_keys, grad_values;                 // backward adds to them; either may be null

  // Work is shared out in places, of which a sequence has one more than rows. Results do not depend on how.
  int64_t place(int64_t sequence) const { return starts[sequence] - starts[0] + sequence; }
  int64_t places() const { return place(sequences); }
};

using AttentionKernel = void (*)(const Attention&, int64_t first_place, int64_t last_place);

struct AttentionKernels {
  Type type;
  AttentionKernel forward, backward;
};

struct InstructionSet {
  std::string_view name;
  const std::vector<Kernels>* kernels;
  const std::vector<AttentionKernels>* attention;
};

// What this processor can run, fastest first.
std::vector<InstructionSet> instruction_sets();

// Null if there is no such cell.
const Kernels* find_kernels(const InstructionSet& set, std::string_view cell, Type type);

}  // namespace lrn
