/* The types of COI that sink code uses, and the fixed-width integers that it counts on. */
#ifndef COITYPES_COMMON_H
#define COITYPES_COMMON_H

#include <stdint.h>

/** A set of the numbers 0 to 1023 of hardware threads, as HSTR_CPU_MASK. */
typedef uint64_t COI_CPU_MASK[16];

#endif
