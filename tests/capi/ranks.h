/* Simulated ranks, each with a runtime of one domain and a stream. */
#pragma once

#include "fixture.h"

enum { RANKS = 3 };

static const char* domains; /* of the runtimes of the ranks */

/** Makes the runtime of a rank, and its stream "left". */
static inline void open_runtime(weir_fabric* fabric, weir_runtime** out_runtime,
                                weir_stream** out_stream) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  weir_place_options place_options = WEIR_PLACE_OPTIONS_INIT;
  weir_place* place = NULL;
  options.domains = domains;
  options.fabric = fabric;
  require(weir_runtime_create(&options, out_runtime));
  place_options.core_count = 1;
  place_options.oversubscribe = true;
  require(weir_place_create(weir_runtime_get_domain(*out_runtime, 0), &place_options, &place));
  *out_stream = make_stream(place, "left");
}

/** Runs a function on all ranks, with domains of each kind in turn. */
static inline void on_ranks(const char* name, weir_fabric_program function) {
  static const char* const kinds[] = {"host:cores=1", "sim:cores=1,gbps=1000,latency_us=0",
                                      "sim:cores=1,gbps=1000,latency_us=0,order=device"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    const int before = check_failures;
    domains = kinds[i];
    CHECK_OK(weir_fabric_simulate(NULL, RANKS, function, NULL));
    printf("%s %s on %s\n", check_failures == before ? "ok    " : "FAILED", name, domains);
    fflush(stdout);
  }
}
