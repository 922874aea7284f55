// SPDX-License-Identifier: Apache-2.0
//
// Tiles of contractions: the largest tiles that are numerous enough to fill a GPU. Grids are the same on all devices,
// so they are chosen for a device that has one shard.
#include "compiler/codegen/gpu/Image.h"
#include "dialects/mt/Compilation.h"

using namespace mlir;
using namespace mtc;

// Number of tiles that is enough for results that are not sums over the batch. With 96, each of eight devices still has
// tiles of 128 x 128 in the layers of ResNet-50 at batch 256 (docs/gpu-code.md). An H100 has more multiprocessors, but
// large tiles load the least from memory. This number changes no bits.
constexpr int64_t minTiles = 96;
static_assert(minTiles <= usualMultiprocessors);

// Tile of `count` results [rows, columns], chosen so that there are `enough` tiles. With 8 x 8 elements per thread,
// nearly all tiles take 120 to 128 of the 255 registers that a thread can have, so two blocks of 256 threads share the
// 65536 registers of a multiprocessor (docs/gpu-code.md). Panels of FMAs are deeper if a thread has fewer sums: a panel
// in flight has the time of one multiplication to arrive.
static ProductTile tileFor(int64_t rows, int64_t columns, int64_t count = 1, int64_t enough = minTiles) {
  constexpr ProductTile tiles[] = {{128, 128, 8, 8, 8}, {128, 64, 8, 8, 8}, {64, 64, 16, 8, 4}};
  if (columns <= 16)
    return {64, 16, 32, 4, 2};
  for (const ProductTile &tile : tiles)
    if (2 * rows > tile.rows && 2 * columns > tile.columns && tilesOf(tile, rows, columns) * count >= enough)
      return tile;
  return {32, 32, 32, 4, 2};
}

static int64_t shardRows(plan::KernelOp op) {
  constexpr int64_t usualRows = 32; // for text without a compilation: Keras' default batch size
  mt::Compilation compilation(op);
  std::optional<int64_t> batch = compilation.findBatch();
  return batch && compilation.findShards() ? ceilDiv(*batch, compilation.getShards()) : usualRows;
}

ProductTile mtc::matmulTile(plan::KernelOp op) {
  Value result = op.getBody().front().getTerminator()->getOperand(0);
  int64_t rows = linesOf(result) * (isSplit(result) ? shardRows(op) : 1);
  return tileFor(rows, tensorOf(result).getShape().back());
}

// A multiprocessor should have two blocks of long sums at a time. If there are too few tiles of 64 x 64, shards are
// divided (SplitK). Tensor cores need large tiles, which load less, so for them shards are divided first. Tiles
// determine where shards are divided, and thus the bits, so the number is the same for every architecture.
ProductTile mtc::treeTile(int64_t rows, int64_t columns, int64_t count, bool isLong, int64_t blocksPerTile) {
  if (!isLong)
    return tileFor(rows, columns, count);
  ProductTile tile = tileFor(rows, columns, count * blocksPerTile, /*enough=*/2 * usualMultiprocessors);
  return tile.rows == 32 && rows > 32 && columns > 32 ? ProductTile{64, 64, 16, 8, 4} : tile;
}

ProductTile mtc::imageTile(plan::KernelOp op, const ImageProduct &product) {
  return tileFor(product.pixels() * product.residues() * shardRows(op), product.columns, product.groups);
}

// The smallest number of samples that use 95 of 100 rows of their tiles, or else the number that uses most of them. It
// divides the samples of a shard, so that a sample has the same position in its tiles on every device.
int64_t mtc::imageSamples(const ProductTile &tile, int64_t pixels, int64_t shardRows) {
  constexpr int64_t maxTiles = 64;
  int64_t best = 1, bestTiles = ceilDiv(pixels, tile.rows);
  for (int64_t samples = 1; samples <= shardRows && samples * pixels <= maxTiles * tile.rows; ++samples) {
    int64_t tiles = ceilDiv(samples * pixels, tile.rows);
    if (shardRows % samples || samples * bestTiles <= best * tiles)
      continue;
    best = samples;
    bestTiles = tiles;
    if (20 * samples * pixels >= 19 * tiles * tile.rows)
      break;
  }
  return best;
}
