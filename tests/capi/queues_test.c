/* Task queues from C: what they are for, and what they refuse. */
#include "fixture.h"

enum { CELLS = 8, CELL = FIXTURE_BYTES / CELLS };

static const char* const kCards[] = {"host:cores=1", "sim:cores=1,gbps=1000,latency_us=0",
                                     "host:cores=1,sim:cores=1,gbps=1000,latency_us=0"};
enum { CARDS = sizeof kCards / sizeof *kCards };

static weir_queue* make_queue(weir_runtime* runtime, const char* policy) {
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  weir_queue* queue = NULL;
  options.name = "tasks";
  options.policy = policy;
  options.no_models = true;
  require(weir_queue_create(runtime, &options, &queue));
  return queue;
}

/** Of the two places of the fixture. */
static weir_queue* make_queue_of(fixture* f) {
  weir_place* places[] = {f->places[0], f->places[1]};
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  weir_queue* queue = NULL;
  options.places = places;
  options.place_count = 2;
  options.no_models = true;
  require(weir_queue_create(f->runtime, &options, &queue));
  return queue;
}

static weir_operand cell_of(weir_buffer* buffer, int cell, weir_access access) {
  const weir_operand operand = {buffer, weir_region_range((uint64_t)cell * CELL, CELL), access};
  return operand;
}

/** Submits a call of a kernel with one operand and one scalar. */
static weir_status submit(weir_queue* queue, const char* kernel, weir_operand operand, double value,
                          weir_event* out_event) {
  const weir_scalar scalar = weir_scalar_f64(value);
  weir_task task = WEIR_TASK_INIT;
  task.kernel_name = kernel;
  task.operands = &operand;
  task.operand_count = 1;
  task.scalars = &scalar;
  task.scalar_count = 1;
  return weir_queue_submit(queue, &task, out_event);
}

static weir_status combine_kernel(const weir_call* call) {
  double* sum = call->operands[0].address;
  const double* part = call->operands[1].address;
  for (size_t i = 0; i < call->operands[0].extent[0] / sizeof *sum; ++i) sum[i] += part[i];
  return WEIR_STATUS_OK;
}

static weir_runtime* make_runtime(const char* domains) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  weir_runtime* runtime = NULL;
  options.domains = domains;
  require(weir_runtime_create(&options, &runtime));
  register_kernel(runtime, "add", add_kernel, NULL);
  register_kernel(runtime, "fail", fail_kernel, NULL);
  return runtime;
}

/** Tasks in program order, read back by acquire, flush and synchronize. */
static void tasks_on(const char* domains) {
  weir_runtime* const runtime = make_runtime(domains);
  double* x = NULL;
  weir_buffer* const buffer = make_buffer(runtime, "x", &x);
  weir_queue* const queue = make_queue(runtime, NULL);
  for (int i = 0; i < 100; ++i) {
    CHECK_OK(submit(queue, "add", cell_of(buffer, i % CELLS, WEIR_ACCESS_READ_WRITE), 1, NULL));
  }
  CHECK_OK(
      weir_queue_acquire(queue, buffer, weir_region_range(0, CELL), WEIR_ACCESS_READ_WRITE, SOON));
  CHECK(x[0] == 13);
  x[0] = 100;
  weir_event done = WEIR_EVENT_INIT, flushed = WEIR_EVENT_INIT;
  CHECK_OK(submit(queue, "add", cell_of(buffer, 0, WEIR_ACCESS_READ_WRITE), 1, &done));
  CHECK_OK(weir_event_wait(runtime, &done, 1, WEIR_WAIT_MODE_ALL, SOON, NULL));
  CHECK_OK(weir_queue_flush(queue, buffer, weir_region_range(0, CELL), &flushed));
  CHECK_OK(weir_event_wait(runtime, &flushed, 1, WEIR_WAIT_MODE_ALL, SOON, NULL));
  CHECK(x[0] == 101);
  CHECK_OK(weir_queue_flush(queue, buffer, weir_region_range(CELL, CELL), NULL));
  CHECK_OK(weir_queue_synchronize(queue, SOON));
  CHECK(x[CELL / sizeof *x] == 13 && x[FIXTURE_DOUBLES - 1] == 12);
  weir_queue_info info = WEIR_QUEUE_INFO_INIT;
  weir_queue_share shares[2];
  CHECK_OK(weir_queue_get_info(queue, &info, shares, 2));
  CHECK_CONTAINS(info.name, "tasks");
  CHECK_CONTAINS(info.policy, "finish");
  CHECK(info.submitted == 101 && info.completed == 101);
  uint64_t tasks = 0;
  for (size_t i = 0; i < info.place_count && i < 2; ++i) tasks += shares[i].tasks;
  CHECK(tasks == 101);
  weir_queue_destroy(queue);
  weir_runtime_destroy(runtime);
}

static void tasks_run_in_program_order(void) {
  for (int i = 0; i < CARDS; ++i) tasks_on(kCards[i]);
}

static void reductions_come_together(void) {
  for (int card = 0; card < CARDS; ++card) {
    weir_runtime* const runtime = make_runtime(kCards[card]);
    double* x = NULL;
    weir_buffer* const buffer = make_buffer(runtime, "x", &x);
    weir_queue* const queue = make_queue(runtime, "steal");
    const weir_operand sum = cell_of(buffer, 1, WEIR_ACCESS_REDUCE);
    const weir_scalar one = weir_scalar_f64(1);
    weir_task task = WEIR_TASK_INIT;
    task.kernel_name = "add";
    task.combine = register_kernel(runtime, "combine", combine_kernel, NULL);
    task.operands = &sum;
    task.operand_count = 1;
    task.scalars = &one;
    task.scalar_count = 1;
    for (int i = 0; i < 20; ++i) CHECK_OK(weir_queue_submit(queue, &task, NULL));
    CHECK_OK(weir_queue_acquire(queue, buffer, sum.region, WEIR_ACCESS_READ, SOON));
    CHECK(x[CELL / sizeof *x] == 20);
    task.combine = NULL;
    CHECK_REFUSED(weir_queue_submit(queue, &task, NULL), "combine");
    weir_queue_destroy(queue);
    weir_runtime_destroy(runtime);
  }
}

static void a_failed_task_poisons_its_dependents(void) {
  for (int card = 0; card < CARDS; ++card) {
    weir_runtime* const runtime = make_runtime(kCards[card]);
    double* x = NULL;
    weir_buffer* const buffer = make_buffer(runtime, "x", &x);
    weir_queue* const queue = make_queue(runtime, NULL);
    const weir_operand broken = cell_of(buffer, 0, WEIR_ACCESS_READ_WRITE);
    weir_event after = WEIR_EVENT_INIT;
    CHECK_OK(submit(queue, "fail", broken, 0, NULL));
    CHECK_OK(submit(queue, "add", broken, 1, &after));
    CHECK_OK(submit(queue, "add", cell_of(buffer, 1, WEIR_ACCESS_READ_WRITE), 1, NULL));
    CHECK_FAILS(weir_event_wait(runtime, &after, 1, WEIR_WAIT_MODE_ALL, SOON, NULL),
                WEIR_STATUS_POISONED, "tile 7 is broken");
    CHECK_FAILS(weir_queue_acquire(queue, buffer, broken.region, WEIR_ACCESS_READ, SOON),
                WEIR_STATUS_POISONED, "fail");
    CHECK_FAILS(weir_queue_synchronize(queue, SOON), WEIR_STATUS_KERNEL_ERROR, "tile 7 is broken");
    CHECK(x[CELL / sizeof *x] == 1);
    CHECK_OK(weir_queue_synchronize(queue, SOON));
    CHECK_OK(submit(queue, "add", broken, 1, NULL));
    CHECK_OK(weir_queue_synchronize(queue, SOON));
    weir_queue_destroy(queue);
    weir_runtime_destroy(runtime);
  }
}

static void a_cancelled_queue_goes_on(void) {
  fixture f;
  set_up(&f);
  weir_queue* queue = make_queue_of(&f);
  const weir_operand gate = cell_of(f.x, 0, WEIR_ACCESS_READ_WRITE);
  weir_event behind = WEIR_EVENT_INIT;
  CHECK_OK(submit(queue, "gate", gate, 0, NULL));
  sem_wait(&f.entered);
  CHECK_OK(submit(queue, "add", gate, 1, &behind));
  CHECK_FAILS(weir_queue_synchronize(queue, 0), WEIR_STATUS_TIMEOUT, NULL);
  CHECK_FAILS(weir_queue_acquire(queue, f.x, gate.region, WEIR_ACCESS_READ, 0), WEIR_STATUS_TIMEOUT,
              NULL);
  CHECK_OK(weir_queue_cancel(queue));
  open_gate(&f);
  CHECK_FAILS(wait_for(&f, behind), WEIR_STATUS_CANCELLED, NULL);
  CHECK_OK(weir_queue_synchronize(queue, SOON));
  CHECK_OK(submit(queue, "add", gate, 2, NULL));
  CHECK_OK(weir_queue_acquire(queue, f.x, gate.region, WEIR_ACCESS_READ, SOON));
  CHECK(f.x_data[0] == 2);
  weir_queue_destroy(queue);
  tear_down(&f);
}

static size_t choose_last(const char* task, const weir_candidate* candidates, size_t count,
                          void* payload) {
  (void)task, (void)candidates;
  ++*(int*)payload;
  return count - 1;
}

static size_t choose_nonsense(const char* task, const weir_candidate* candidates, size_t count,
                              void* payload) {
  (void)task, (void)candidates, (void)payload;
  return count;
}

static size_t choose_never(const char* task, const weir_candidate* candidates, size_t count,
                           void* payload) {
  (void)task, (void)candidates, (void)count, (void)payload;
  return WEIR_POLICY_LATER;
}

static weir_status add_policy(weir_runtime* runtime, const char* name, weir_policy_function choose,
                              void* payload) {
  weir_policy_options options = WEIR_POLICY_OPTIONS_INIT;
  options.name = name;
  options.summary = "of a test";
  options.choose = choose;
  options.payload = payload;
  return weir_policy_register(runtime, &options);
}

static void policies_of_the_program(void) {
  weir_runtime* const runtime = make_runtime(kCards[2]);
  double* x = NULL;
  weir_buffer* const buffer = make_buffer(runtime, "x", &x);
  int asked = 0;
  CHECK_OK(add_policy(runtime, "last", choose_last, &asked));
  CHECK_OK(add_policy(runtime, "nonsense", choose_nonsense, NULL));
  CHECK_OK(add_policy(runtime, "never", choose_never, NULL));
  CHECK_FAILS(add_policy(runtime, "last", choose_last, NULL), WEIR_STATUS_INVALID_ARGUMENT,
              "'last'");
  CHECK_FAILS(add_policy(runtime, "finish", choose_last, NULL), WEIR_STATUS_INVALID_ARGUMENT,
              "'finish'");
  CHECK_REFUSED(add_policy(runtime, NULL, choose_last, NULL), "name");
  CHECK_REFUSED(add_policy(runtime, "empty", NULL, NULL), "'empty'");
  CHECK_REFUSED(weir_policy_register(runtime, NULL), "name");
  const weir_operand cell = cell_of(buffer, 0, WEIR_ACCESS_READ_WRITE);
  weir_queue* queue = make_queue(runtime, "last");
  weir_queue_info info = WEIR_QUEUE_INFO_INIT;
  weir_queue_share shares[2];
  CHECK_OK(submit(queue, "add", cell, 1, NULL));
  CHECK_OK(weir_queue_synchronize(queue, SOON));
  CHECK_OK(weir_queue_get_info(queue, &info, shares, 2));
  CHECK(asked > 0 && info.place_count == 2 && shares[1].tasks == 1 && x[0] == 1);
  CHECK(shares[1].bytes_in == CELL && shares[1].bytes_out == CELL);
  weir_queue_destroy(queue);
  queue = make_queue(runtime, "nonsense");
  CHECK_OK(submit(queue, "add", cell, 1, NULL));
  CHECK_REFUSED(weir_queue_synchronize(queue, SOON), "chose candidate 2 of 2");
  weir_queue_destroy(queue);
  queue = make_queue(runtime, "never");
  CHECK_OK(submit(queue, "add", cell, 1, NULL));
  CHECK_REFUSED(weir_queue_synchronize(queue, SOON), "no place would ever take it");
  weir_queue_destroy(queue);
  weir_runtime_destroy(runtime);
}

static void queues_that_cannot_be(void) {
  fixture f;
  set_up(&f);
  weir_queue* queue = NULL;
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  weir_place* places[] = {f.places[0], f.places[1]};
  const double weights[] = {1, -1};
  CHECK_REFUSED(weir_queue_create(NULL, NULL, &queue), "runtime");
  CHECK_REFUSED(weir_queue_create(f.runtime, NULL, NULL), "out_queue");
  options.policy = "finnish";
  CHECK_FAILS(weir_queue_create(f.runtime, &options, &queue), WEIR_STATUS_NOT_FOUND,
              "did you mean 'finish'");
  options.policy = NULL;
  options.place_count = 2;
  CHECK_REFUSED(weir_queue_create(f.runtime, &options, &queue), "place");
  options.places = places;
  options.weight_count = 2;
  CHECK_REFUSED(weir_queue_create(f.runtime, &options, &queue), "NULL");
  options.weights = weights;
  CHECK_REFUSED(weir_queue_create(f.runtime, &options, &queue), "weight -1");
  options.weight_count = 1;
  CHECK_REFUSED(weir_queue_create(f.runtime, &options, &queue),
                "1 weight for 2 places: give one for each place");
  CHECK(queue == NULL);
  weir_queue_destroy(NULL);
  tear_down(&f);
}

static void tasks_that_cannot_be(void) {
  fixture f, other;
  set_up(&f);
  set_up(&other);
  weir_queue* queue = make_queue_of(&f);
  const weir_operand cell = cell_of(f.x, 0, WEIR_ACCESS_READ_WRITE);
  const weir_implementation elsewhere = {"cuda", add_kernel, NULL};
  weir_kernel_options foreign = WEIR_KERNEL_OPTIONS_INIT;
  foreign.name = "elsewhere";
  foreign.implementations = &elsewhere;
  foreign.implementation_count = 1;
  require(weir_kernel_register(f.runtime, &foreign, NULL));
  CHECK_REFUSED(weir_queue_submit(NULL, NULL, NULL), "queue");
  CHECK_REFUSED(weir_queue_submit(queue, NULL, NULL), "task");
  weir_task task = WEIR_TASK_INIT;
  CHECK_REFUSED(weir_queue_submit(queue, &task, NULL), "kernel");
  task.kernel_name = "ad";
  CHECK_FAILS(weir_queue_submit(queue, &task, NULL), WEIR_STATUS_NOT_FOUND, "'ad'");
  task.kernel_name = "add";
  task.operand_count = 1;
  CHECK_REFUSED(weir_queue_submit(queue, &task, NULL), "NULL");
  task.operand_count = 0;
  task.priority = 2;
  CHECK_REFUSED(weir_queue_submit(queue, &task, NULL), "priority 2");
  task.priority = 0;
  task.domains = 2;
  CHECK_REFUSED(weir_queue_submit(queue, &task, NULL), "no place of queue 'queue");
  CHECK_FAILS(submit(queue, "elsewhere", cell, 0, NULL), WEIR_STATUS_UNSUPPORTED, "code for cuda");
  CHECK_REFUSED(submit(queue, "add", cell_of(other.x, 0, WEIR_ACCESS_READ), 0, NULL),
                "another runtime");
  CHECK_REFUSED(submit(queue, "add", cell_of(NULL, 0, WEIR_ACCESS_READ), 0, NULL), "buffer");
  CHECK_REFUSED(submit(queue, "add", cell_of(f.x, CELLS, WEIR_ACCESS_READ), 0, NULL), "'vector'");
  CHECK_REFUSED(submit(queue, "add", cell_of(f.x, 0, (weir_access)99), 0, NULL), "access 99");
  CHECK_REFUSED(weir_queue_acquire(queue, f.x, cell.region, WEIR_ACCESS_REDUCE, 0), "access");
  CHECK_REFUSED(weir_queue_acquire(NULL, f.x, cell.region, WEIR_ACCESS_READ, 0), "queue");
  CHECK_REFUSED(weir_queue_flush(queue, NULL, cell.region, NULL), "buffer");
  CHECK_REFUSED(weir_queue_flush(NULL, f.x, cell.region, NULL), "queue");
  CHECK_REFUSED(weir_queue_synchronize(NULL, 0), "queue");
  CHECK_REFUSED(weir_queue_cancel(NULL), "queue");
  CHECK_REFUSED(weir_queue_get_info(queue, NULL, NULL, 0), "out_info");
  weir_queue_info info = WEIR_QUEUE_INFO_INIT;
  CHECK_OK(weir_queue_get_info(queue, &info, NULL, 0));
  CHECK(info.submitted == 0);
  weir_buffer* const gone = f.y;
  weir_buffer_destroy(f.y);
  CHECK_REFUSED(submit(queue, "add", cell_of(gone, 0, WEIR_ACCESS_READ), 0, NULL), "'result'");
  weir_queue_destroy(queue);
  CHECK_REFUSED(submit(queue, "add", cell, 0, NULL), "queue");
  CHECK_REFUSED(weir_queue_synchronize(queue, 0), "queue");
  weir_queue_destroy(queue);
  tear_down(&other);
  tear_down(&f);
}

int main(void) {
  RUN(tasks_run_in_program_order);
  RUN(reductions_come_together);
  RUN(a_failed_task_poisons_its_dependents);
  RUN(a_cancelled_queue_goes_on);
  RUN(policies_of_the_program);
  RUN(queues_that_cannot_be);
  RUN(tasks_that_cannot_be);
  return check_failures != 0;
}
