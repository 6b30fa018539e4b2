/* Places: partitions of a domain's resources ("spatial sharing"). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/domain.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A set of a domain's cores with a team of worker threads, one pinned to each core. */
typedef struct weir_place weir_place;

typedef struct weir_place_options {
  size_t struct_size;
  const char* name;      /**< NULL: "DOMAIN/pN" */
  const uint32_t* cores; /**< below weir_domain_info::cores; NULL: the first core_count free ones */
  size_t core_count;     /**< 0 with cores == NULL: all that are free */
  bool oversubscribe;    /**< allow cores that another place uses, and more places than cores */
} weir_place_options;
#define WEIR_PLACE_OPTIONS_INIT \
  { sizeof(weir_place_options), NULL, NULL, 0, false }

/** Makes a place of a domain. options may be NULL: all free cores. The caller owns *out_place. */
WEIR_API weir_status weir_place_create(weir_domain* domain, const weir_place_options* options,
                                       weir_place** out_place);

/**
 * Divides the free cores evenly among count places; the first ones get the remainder. More places
 * than cores is an error unless oversubscribe is true. The caller owns the places.
 */
WEIR_API weir_status weir_domain_partition(weir_domain* domain, size_t count, bool oversubscribe,
                                           weir_place** out_places);

/**
 * Destroys the streams of the place like weir_stream_destroy(), then the place, and frees its
 * cores. NULL is ignored. Inside a kernel, callback or stage of a pipeline this cannot wait: a
 * thread of the runtime does it soon. A thread that makes a place waits for these cores if it needs
 * them; a kernel, callback or stage gets BUSY.
 */
WEIR_API void weir_place_destroy(weir_place* place);

typedef struct weir_place_info {
  size_t struct_size;
  const char* name; /**< lives as long as the place */
  weir_domain* domain;
  size_t core_count;
} weir_place_info;
#define WEIR_PLACE_INFO_INIT \
  { sizeof(weir_place_info), NULL, NULL, 0 }

/** Fills out_info. */
WEIR_API weir_status weir_place_get_info(const weir_place* place, weir_place_info* out_info);

#ifdef __cplusplus
}
#endif
