/* Domains and places that cannot be. */
#include "fixture.h"

static weir_runtime* runtime;
static weir_domain* domain;
static uint32_t cores;

static weir_status make_place(const uint32_t* list, size_t count, bool oversubscribe,
                              weir_place** out_place) {
  weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
  options.name = "corner";
  options.cores = list;
  options.core_count = count;
  options.oversubscribe = oversubscribe;
  return weir_place_create(domain, &options, out_place);
}

static void zero_places(void) {
  weir_place* place = NULL;
  CHECK_REFUSED(weir_domain_partition(domain, 0, false, &place), "'host'");
  CHECK_REFUSED(weir_domain_partition(domain, 0, true, &place), "0 places");
  CHECK(place == NULL);
}

static void a_place_without_cores(void) {
  const uint32_t none = 0;
  weir_place* place = NULL;
  CHECK_REFUSED(make_place(&none, 0, false, &place), "'host'");
  CHECK_REFUSED(make_place(&none, 0, true, &place), "core");
  CHECK(place == NULL);
}

static void cores_that_are_not_there(void) {
  const uint32_t beyond = cores;
  const uint32_t twice[] = {0, 0};
  weir_place* place = NULL;
  CHECK_REFUSED(make_place(&beyond, 1, false, &place), "'host'");
  CHECK_REFUSED(make_place(&beyond, 1, true, &place), "has no core");
  CHECK_REFUSED(make_place(twice, 2, true, &place), "core 0");
  CHECK_REFUSED(make_place(NULL, cores + 1, false, &place), "'host'");
  CHECK_REFUSED(make_place(NULL, cores + 1, true, &place), "'host'");
  CHECK_REFUSED(make_place(NULL, SIZE_MAX, true, &place), "'host'");
  CHECK(place == NULL);
}

static void more_places_than_cores(void) {
  weir_place** const places = calloc(cores + 1u, sizeof *places);
  CHECK_REFUSED(weir_domain_partition(domain, cores + 1u, false, places), "'host'");
  CHECK_CONTAINS(weir_last_error(), "oversubscribe");
  CHECK(places[0] == NULL);
  CHECK_OK(weir_domain_partition(domain, cores + 1u, true, places));
  for (uint32_t i = 0; i <= cores; ++i) weir_place_destroy(places[i]);
  CHECK_OK(weir_domain_partition(domain, cores, false, places));
  for (uint32_t i = 0; i < cores; ++i) weir_place_destroy(places[i]);
  free(places);
}

static void cores_of_another_place(void) {
  const uint32_t first = 0;
  weir_place* taken = NULL;
  weir_place* place = NULL;
  CHECK_OK(make_place(NULL, 0, false, &taken));
  CHECK_FAILS(make_place(&first, 1, false, &place), WEIR_STATUS_BUSY, "core 0 of domain 'host'");
  CHECK_FAILS(make_place(NULL, 1, false, &place), WEIR_STATUS_BUSY, "'host'");
  CHECK_REFUSED(weir_domain_partition(domain, 1, false, &place), "'host'");
  CHECK(place == NULL);
  CHECK_OK(make_place(&first, 1, true, &place));
  weir_place_destroy(place);
  weir_place_destroy(taken);
  CHECK_OK(make_place(&first, 1, false, &place));
  weir_place_destroy(place);
}

static weir_status open_domains(const char* domains) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  weir_runtime* made = NULL;
  options.domains = domains;
  const weir_status status = weir_runtime_create(&options, &made);
  weir_runtime_destroy(made);
  return status;
}

static void domains_that_cannot_be(void) {
  CHECK_FAILS(open_domains("hots"), WEIR_STATUS_NOT_FOUND, "hots");
  CHECK_CONTAINS(weir_last_error(), "'host'");
  CHECK_REFUSED(open_domains("sim:coers=2"), "coers");
  CHECK_REFUSED(open_domains("sim:cores=two"), "two");
  CHECK_REFUSED(open_domains("sim:cores=0"), "cores");
  CHECK_REFUSED(open_domains("sim:gbps=-1"), "gbps");
  CHECK_REFUSED(open_domains("sim:duplex=quarter"), "quarter");
  CHECK_REFUSED(open_domains("sim:memory=1XiB"), "1XiB");
  CHECK_REFUSED(open_domains("sim:speed=0"), "speed");
  CHECK_REFUSED(open_domains("host:cores=0"), "cores");
  CHECK_REFUSED(open_domains("host:cores=1000000"), "1000000");
  CHECK_REFUSED(open_domains("host,,sim"), "'' is not a domain");
  CHECK_OK(open_domains("host,sim:cores=1"));
}

static void domain_names(void) {
  weir_domain* found = NULL;
  CHECK_FAILS(weir_runtime_find_domain(runtime, "hosts", &found), WEIR_STATUS_NOT_FOUND, "hosts");
  CHECK_CONTAINS(weir_last_error(), "did you mean 'host'");
  CHECK(found == NULL);
  CHECK_OK(weir_runtime_find_domain(runtime, "host", &found));
  CHECK(found == domain);
}

int main(void) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  weir_domain_info info = WEIR_DOMAIN_INFO_INIT;
  options.domains = "host";
  require(weir_runtime_create(&options, &runtime));
  domain = weir_runtime_get_domain(runtime, 0);
  require(weir_domain_get_info(domain, &info));
  cores = (uint32_t)info.cores;
  RUN(zero_places);
  RUN(a_place_without_cores);
  RUN(cores_that_are_not_there);
  RUN(more_places_than_cores);
  RUN(cores_of_another_place);
  RUN(domain_names);
  weir_runtime_destroy(runtime);
  RUN(domains_that_cannot_be);
  return check_failures != 0;
}
