/* SPDX-License-Identifier: Apache-2.0
 *
 * The first 64 bytes of a plan file, for writer and reader. docs/plan-format.md section 2 is the specification.
 * All numbers in a plan file are little endian.
 */
#ifndef MT_ABI_PLAN_HEADER_H
#define MT_ABI_PLAN_HEADER_H

#include <stdint.h>

#define MT_PLAN_MAGIC "MTPLAN\r\n"  /* 8 bytes, no terminator; \r\n shows transfers that rewrite line ends */
#define MT_PLAN_VERSION 8u          /* of a plan that has nothing of a later version */
#define MT_PLAN_NEWEST_VERSION 13u  /* the last one that this code writes and reads */
#define MT_PLAN_GPU_VERSION 11u     /* the first one whose code for GPUs is called as gpu_kernel.h says */
#define MT_PLAN_COMPACT_VERSION 12u /* the first one with compact tables */
#define MT_PLAN_ALIGNMENT 4096u     /* of every section's offset, in bytes */

typedef struct mt_plan_header {
  char magic[8];
  uint32_t version;
  uint32_t header_size;   /* 64 */
  uint64_t file_size;     /* bytes, header included */
  uint64_t tables_offset; /* 64 */
  uint64_t tables_size;
  uint64_t tables_hash_low; /* XXH3-128 of the tables, seed 0 */
  uint64_t tables_hash_high;
  uint64_t header_hash; /* XXH3-64 of the 56 bytes before this field, seed 0 */
} mt_plan_header;

#ifdef __cplusplus
static_assert(sizeof(mt_plan_header) == 64, "the header is 64 bytes");
#endif
#endif
