/* A program opens the library, uses it and closes it, again and again.
 *
 * usage: unload_test LIBRARY        100 times, or WEIR_TEST_CYCLES */
#include <dlfcn.h>
#include <string.h>

#include <weir/weir.h>

#include "usage.h"

enum { WARM_UP = 300, GROWTH_KIB = 1024 };

static void* symbol(void* library, const char* name) {
  void* const address = dlsym(library, name);
  if (address == NULL) {
    printf("no %s: %s\n", name, dlerror());
    exit(1);
  }
  return address;
}

/* The same as a function pointer, which C does not convert. */
#define FUNCTION(type, variable, library, name)    \
  type variable;                                   \
  do {                                             \
    void* const address_ = symbol(library, name);  \
    memcpy(&variable, &address_, sizeof address_); \
  } while (0)

typedef weir_status (*create_function)(const weir_runtime_options*, weir_runtime**);
typedef void (*destroy_function)(weir_runtime*);

static void one_cycle(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    printf("%s\n", dlerror());
    exit(1);
  }
  FUNCTION(create_function, create, library, "weir_runtime_create");
  FUNCTION(destroy_function, destroy, library, "weir_runtime_destroy");
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  weir_runtime* runtime = NULL;
  options.domains = "host,sim:cores=1";
  if (create(&options, &runtime) != WEIR_STATUS_OK) exit(1);
  destroy(runtime);
  if (dlclose(library) != 0) exit(1);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const long count = amount_of("WEIR_TEST_CYCLES", 100);
  for (int i = 0; i < WARM_UP; ++i) one_cycle(argv[1]);
  const usage before = measure_usage();
  for (long i = 0; i < count; ++i) one_cycle(argv[1]);
  const usage after = measure_usage();
  /* What is promised: it stays where it is. */
  void* const there = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
  const long grown = after.resident_kib - before.resident_kib;
  if (there == NULL || grown >= GROWTH_KIB || after.threads != before.threads ||
      after.descriptors != before.descriptors) {
    printf("library %s, %ld KiB more, threads %ld to %ld, descriptors %ld to %ld\n",
           there ? "there" : "gone", grown, before.threads, after.threads, before.descriptors,
           after.descriptors);
    return 1;
  }
  printf("proof: opened and closed %ld times, %ld KiB more resident\n", count, grown);
  return 0;
}
