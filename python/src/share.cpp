#include "share.hpp"

#include <utility>

namespace weir::py {

namespace {

/// Lends the stream of a chunk to a call, and takes it back.
class LentStream {
 public:
  LentStream(const PlaceRef& place, weir_stream* handle)
      : stream_(std::make_shared<Stream>(place, handle)) {}
  ~LentStream() { stream_->handle = nullptr; }
  LentStream(const LentStream&) = delete;
  LentStream& operator=(const LentStream&) = delete;
  const std::shared_ptr<Stream>& get() const noexcept { return stream_; }

 private:
  std::shared_ptr<Stream> stream_;
};

weir_event enqueue_chunk(const Share& share, const weir_chunk& chunk) {
  const LentStream stream(share.places[chunk.place], chunk.stream);
  const nb::object said =
      share.enqueue(Chunk{chunk.first, chunk.count, stream.get(), chunk.place, chunk.way});
  const Event* event = nullptr;
  if (!nb::try_cast(said, event) || event == nullptr) {
    raise_type("the function of a share returns the event of the last action of the chunk, not " +
               nb::cast<std::string>(nb::type_name(said.type())));
  }
  return event->handle;
}

weir_status run_chunk(const weir_chunk* chunk, void* payload, weir_event* out_event) {
  const nb::gil_scoped_acquire held;
  const CallbackScope scope;
  auto& share = *static_cast<Share*>(payload);
  try {
    *out_event = enqueue_chunk(share, *chunk);
    return WEIR_STATUS_OK;
  } catch (nb::python_error& error) {
    if (!share.raised.is_valid()) share.raised = nb::borrow(error.value());
  }
  return WEIR_STATUS_KERNEL_ERROR;
}

/// Returns the offset of the results of each item, and the end of the last ones.
std::vector<std::size_t> offsets_of(std::uint64_t items, std::size_t bytes) {
  if (items == 0 || bytes == 0 || bytes % items != 0) {
    raise_value(std::to_string(bytes) + " bytes of results cannot be divided equally among " +
                std::to_string(items) + " items");
  }
  std::vector<std::size_t> offsets(items + 1);
  for (std::uint64_t item = 0; item <= items; ++item) offsets[item] = item * (bytes / items);
  return offsets;
}

}  // namespace

std::shared_ptr<Share> Share::start(const SessionRef& session, std::uint64_t items,
                                    nb::object enqueue, const ShareOptions& wanted) {
  session->require_open();
  if (!wanted.work.empty() && wanted.work.size() != items) {
    raise_value("the work of " + std::to_string(wanted.work.size()) + " items is given for " +
                std::to_string(items));
  }
  auto share = make_waiting<Share>();
  share->session = session;
  share->fabric = wanted.fabric;
  for (const PlaceRef& place : wanted.places) share->places.push_back(used(place));
  share->enqueue = std::move(enqueue);
  std::vector<weir_place*> places;
  for (const PlaceRef& place : wanted.places) {
    places.push_back(py::open(*session, place->handle, "place"));
  }
  weir_share_options options = WEIR_SHARE_OPTIONS_INIT;
  options.name = wanted.name;
  options.items = items;
  options.work = wanted.work.empty() ? nullptr : wanted.work.data();
  options.places = places.data();
  options.place_count = places.size();
  options.chunks = wanted.chunks;
  options.enqueue = run_chunk;
  options.payload = share.get();
  options.ways = wanted.ways;
  options.scheduler = wanted.scheduler;
  std::vector<std::size_t> offsets;
  if (!wanted.results.is_none()) {
    share->results = std::make_unique<Bytes>(wanted.results, true);
    offsets = offsets_of(items, share->results->size());
    options.results = share->results->data();
    options.result_offsets = offsets.data();
  }
  if (share->fabric) {
    options.fabric = share->fabric->open();
    // Signals can interrupt this barrier. The other ranks then wait without a timeout, so an
    // exception of a handler is raised only afterwards.
    check(wait_for({}, [&](std::int64_t ns) { return weir_fabric_barrier(options.fabric, ns); },
                   {in_use_of(share->fabric)}));
    std::erase_if(share->fabric->shares, [](const auto& other) { return other.expired(); });
    share->fabric->shares.push_back(share);
  }
  share->call([&] { return weir_share_start(session->handle(), &options, &share->handle); });
  return share;
}

void Share::close() {
  if (!session) return;
  if (handle != nullptr && !session->closed()) {
    require_no_callback("what may wait for it");
    if (interrupted()) return cancel();  // its function may be running
    in_use_.close();
  }
  end(*session, handle, weir_share_destroy);
  places.clear();
}

void Share::wait(const Timeout& timeout) const {
  weir_share* const opened = py::open(*session, handle, "share");
  const auto wait = [&](std::int64_t ns) { return weir_share_wait(opened, ns); };
  const weir_status status =
      wait_for(timeout, wait, {&session->in_use, in_use_of(fabric), &in_use_});
  if (status != WEIR_STATUS_TIMEOUT && raised.is_valid()) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
    throw nb::python_error();
  }
  check(status);
}

void Share::cancel() const {
  weir_share* const opened = py::open(*session, handle, "share");
  call([&] { return weir_share_cancel(opened); });
}

weir_share_info Share::info() const {
  weir_share_info found = WEIR_SHARE_INFO_INIT;
  weir_share* const opened = py::open(*session, handle, "share");
  call([&] { return weir_share_get_info(opened, &found, nullptr, 0); });
  return found;
}

nb::list Share::parts() const {
  weir_share_info found = info();
  std::vector<weir_share_part> parts(found.place_count);
  call([&] { return weir_share_get_info(handle, &found, parts.data(), parts.size()); });
  nb::list list;
  for (const weir_share_part& part : parts) {
    nb::dict each;
    each["place"] = part.place;
    each["items"] = part.items;
    each["visits"] = part.visits;
    each["work"] = part.work;
    each["busy_s"] = static_cast<double>(part.busy_ns) * 1e-9;
    each["idle_s"] = static_cast<double>(part.idle_ns) * 1e-9;
    each["way"] = part.way;
    each["lost"] = part.lost;
    each["rank"] = part.rank;
    list.append(each);
  }
  return list;
}

}  // namespace weir::py
