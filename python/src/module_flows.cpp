// Classes of the module that distribute work: pipelines and shares.

#include "module.hpp"
#include "pipeline.hpp"
#include "share.hpp"

namespace weir::py {

namespace {

/// The pipeline object of the Python module; weir._pipelines derives from it.
struct PipelineFace {
  PipelineRef body;
};

Output output_of(nb::handle given) {
  const Tunnel* tunnel = nullptr;
  if (nb::try_cast(given, tunnel)) return {tunnel->handle};
  const Stencil* stencil = nullptr;
  if (nb::try_cast(given, stencil)) return {stencil->input.handle, stencil->handle};
  raise_type("a stage puts into tunnels and stencils, not into a " +
             nb::cast<std::string>(nb::type_name(given.type())));
}

nb::object items_of(nb::handle items, nb::handle dtype) {
  return nb::module_::import_("weir._pipelines").attr("items_of")(items, dtype);
}

}  // namespace

void define_pipelines(nb::module_& m) {
  nb::class_<Tunnel>(m, "Tunnel", "A way to a stage, for items of one dtype.")
      .def_ro("name", &Tunnel::name)
      .def_ro("dtype", &Tunnel::dtype, nb::sig("def dtype(self) -> numpy.dtype"))
      .def("feed", &open_feed,
           "Opens a way for the program to put items. Once the pipeline has started only while "
           "another feed of the tunnel is open.",
           nb::sig("def feed(self) -> Feed"))
      .def("__repr__",
           [](nb::handle tunnel) { return text_of(tunnel, "<weir.Tunnel of {0.dtype}>"); });

  nb::class_<Stencil>(m, "Stencil",
                      "What makes each value of a matrix of those around it. A stage that has it "
                      "as an output returns (row, column, values), or a list of these.")
      .def_ro("name", &Stencil::name)
      .def_ro("dtype", &Stencil::dtype, nb::sig("def dtype(self) -> numpy.dtype"))
      .def_prop_ro("regions", [](const Stencil& stencil) { return stencil.info().regions; })
      .def_prop_ro("regions_copied",
                   [](const Stencil& stencil) { return stencil.info().regions_copied; })
      .def_prop_ro("tiles_made", [](const Stencil& stencil) { return stencil.info().tiles_made; })
      .def("__repr__",
           [](nb::handle stencil) { return text_of(stencil, "<weir.Stencil of {0.dtype}>"); });

  nb::class_<Feed>(m, "Feed",
                   "A thread of the program, seen as a source. The stages wait for more until it "
                   "is closed, which the end of a with statement does.")
      .def(
          "put",
          [](Feed& feed, nb::handle items, const Timeout& timeout) {
            feed.put(items_of(items, feed.dtype), timeout);
          },
          "items"_a, "timeout"_a = nb::none(), "Puts an item or an array of items; waits for room.",
          nb::sig("def put(self, items: numpy.typing.ArrayLike, timeout: float | None = None) -> "
                  "None"))
      .def("next_epoch", &Feed::next_epoch, "What is put from now on belongs to the next epoch.")
      .def("close", &Feed::close, "Puts nothing more. A put that waits on another thread raises.")
      .def("__enter__", [](std::shared_ptr<Feed> feed) { return feed; })
      .def("__exit__", [](Feed& feed, nb::args) { feed.close(); });

  nb::class_<Item>(m, "Item",
                   "An item that a stage keeps beyond its call. Until it is complete, or gone, its "
                   "epoch, its stage and the pipeline are not at their end.")
      .def("complete", &Item::complete, "On any thread, once.");
  m.def("_this_batch", &Item::this_batch);
  m.def("_keep_item", &Item::keep, "batch"_a, "index"_a);

  nb::class_<PipelineFace>(m, "_Pipeline")
      .def(
          "__init__",
          [](PipelineFace* self, const Runtime& runtime, const Text& name, PlaceRef place,
             bool keep_going, std::size_t batch, std::size_t epochs, std::size_t keep_bytes,
             nb::object on_failure, nb::object on_epoch) {
            const PipelineRef body = Pipeline::make(
                runtime.session, {c_str(name), std::move(place), keep_going, batch, epochs,
                                  keep_bytes, std::move(on_failure), std::move(on_epoch)});
            runtime.session->pipelines.push_back(body);
            new (self) PipelineFace{body};
          },
          "runtime"_a, "name"_a.none(), "place"_a.none(), "keep_going"_a, "batch"_a, "epochs"_a,
          "keep_bytes"_a, "on_failure"_a.none(), "on_epoch"_a.none())
      .def(
          "tunnel",
          [](const PipelineFace& face, nb::handle dtype, std::size_t capacity,
             const std::string& overflow, const Text& name) {
            return add_tunnel(face.body, dtype, capacity, overflow, c_str(name));
          },
          "dtype"_a = "float64", "capacity"_a = 0, "overflow"_a = "block", "name"_a = nb::none(),
          "Adds a tunnel. dtype: of an item; (\"f4\", 16) is a row of 16, and records are good. "
          "capacity: items that wait for any worker. overflow: 'block', 'drop-newest', "
          "'drop-oldest' or 'keep-latest'.",
          nb::sig("def tunnel(self, dtype: numpy.typing.DTypeLike = 'float64', capacity: int = 0, "
                  "overflow: str = 'block', name: str | None = None) -> Tunnel"))
      .def(
          "_add_stage",
          [](const PipelineFace& face, const Text& name, const Tunnel* input, nb::handle given,
             nb::object work, nb::object at_end, PlaceRef place, std::size_t workers, bool ordered,
             double item_seconds) {
            std::vector<Output> outputs;
            for (const nb::handle output : given) outputs.push_back(output_of(output));
            add_stage(face.body, {c_str(name), input, outputs, std::move(work), std::move(at_end),
                                  std::move(place), workers, ordered, item_seconds});
          },
          "name"_a.none(), "input"_a.none(), "outputs"_a, "work"_a, "at_end"_a.none(),
          "place"_a.none(), "workers"_a, "ordered"_a, "item_seconds"_a)
      .def(
          "_add_kernel_stage",
          [](const PipelineFace& face, const Text& name, const Tunnel& input,
             const std::vector<const Tunnel*>& outputs, nb::handle kernel, nb::handle scalars,
             const std::vector<std::size_t>& most, const std::vector<std::string>& counting,
             PlaceRef place, std::size_t batch, std::size_t in_flight, bool ordered,
             nb::handle tables, std::size_t scratch_bytes) {
            KernelStageOptions options{c_str(name), &input,  outputs,          kernel,
                                       scalars,     {},      std::move(place), batch,
                                       in_flight,   ordered, tables,           scratch_bytes};
            for (std::size_t i = 0; i < outputs.size(); ++i) {
              options.counts.push_back({most.at(i), counting_of(counting.at(i))});
            }
            add_kernel_stage(face.body, options);
          },
          "name"_a.none(), "input"_a, "outputs"_a, "kernel"_a, "scalars"_a, "most"_a, "counting"_a,
          "place"_a, "batch"_a, "in_flight"_a, "ordered"_a, "tables"_a, "scratch_bytes"_a)
      .def(
          "_add_stencil",
          [](const PipelineFace& face, const Text& name, const Tunnel& input, const Tunnel* output,
             nb::handle kernel, nb::handle scalars, nb::handle result, PlaceRef place,
             std::size_t region_rows, std::size_t region_columns, std::size_t halo, bool corners,
             std::size_t sweeps, std::size_t batch, std::size_t in_flight) {
            return add_stencil(
                face.body, {c_str(name), &input, output, kernel, scalars, result, std::move(place),
                            region_rows, region_columns, halo, corners, sweeps, batch, in_flight});
          },
          "name"_a.none(), "input"_a, "output"_a.none(), "kernel"_a, "scalars"_a, "result"_a,
          "place"_a, "region_rows"_a, "region_columns"_a, "halo"_a, "corners"_a, "sweeps"_a,
          "batch"_a, "in_flight"_a)
      .def(
          "start", [](const PipelineFace& face) { face.body->start(); },
          "Starts the workers and returns. A pipeline starts once.")
      .def(
          "wait",
          [](const PipelineFace& face, const Timeout& timeout) { face.body->wait(timeout); },
          "timeout"_a = nb::none(), "Waits for the end; raises the first failure.")
      .def(
          "cancel", [](const PipelineFace& face) { face.body->cancel(); },
          "Ends the pipeline without working on the items that are left.")
      .def_prop_ro("_running", [](const PipelineFace& face) { return face.body->running; })
      .def_prop_ro("at_end", [](const PipelineFace& face) { return face.body->info().at_end; })
      .def_prop_ro(
          "epochs", [](const PipelineFace& face) { return face.body->info().epochs; },
          "How many are complete.")
      .def(
          "stages", [](const PipelineFace& face) { return face.body->stages(); },
          "What each stage with an input has done: items created for it, complete, dropped, "
          "failed.",
          nb::sig("def stages(self) -> list[dict[str, typing.Any]]"))
      .def(
          "state",
          [](const PipelineFace& face, const std::vector<double>& percentiles) {
            return face.body->state(percentiles);
          },
          "percentiles"_a = std::vector<double>{50, 95, 99},
          "What stages and tunnels are doing, on any thread: counts, what waits, seconds that "
          "workers were busy, and the ages in seconds that so many percent of the items had at "
          "most when the stage was done with them, measured from the first call on.",
          nb::sig("def state(self, percentiles: collections.abc.Sequence[float] = (50, 95, 99)) "
                  "-> dict[str, typing.Any]"))
      .def(
          "close", [](const PipelineFace& face) { face.body->close(); },
          "Cancels what still runs, and frees the pipeline.");
}

void define_shares(nb::module_& m) {
  nb::class_<Chunk>(m, "Chunk", "Items [first, first + count) of a share, for one place.")
      .def_ro("first", &Chunk::first)
      .def_ro("count", &Chunk::count)
      .def_ro("stream", &Chunk::stream, "Of the place, during the call that gets the chunk.")
      .def_ro("place", &Chunk::place, "Index in the places of the share.")
      .def_ro("way", &Chunk::way)
      .def("__repr__", [](nb::handle chunk) {
        return text_of(chunk, "<weir.Chunk of {0.count} items from {0.first}>");
      });

  nb::class_<Share>(m, "Share", "Items that places fetch chunks of: see Runtime.share().")
      .def("wait", &Share::wait, "timeout"_a = nb::none(),
           "Waits until all items are done; raises what the function raised, or the failure of a "
           "chunk.")
      .def("cancel", &Share::cancel, "Hands out no more chunks.")
      .def_prop_ro("items", [](const Share& share) { return share.info().items; })
      .def_prop_ro(
          "done", [](const Share& share) { return share.info().done; }, "How many items are done.")
      .def_prop_ro("chunks", [](const Share& share) { return std::string(share.info().chunks); })
      .def_prop_ro(
          "makespan_s",
          [](const Share& share) { return static_cast<double>(share.info().makespan_ns) * 1e-9; },
          "From the start to the end, or until now.")
      .def_prop_ro(
          "ideal_s", [](const Share& share) { return share.info().ideal_ns * 1e-9; },
          "The work over the sum of the speeds of the places.")
      .def("parts", &Share::parts, "What each place did: items, visits, seconds.",
           nb::sig("def parts(self) -> list[dict[str, typing.Any]]"))
      .def("_repr_html_", &html_of, nb::sig(kHtmlSignature))
      .def("close", &Share::close, "Waits for the items, whatever their outcome, and ends it.")
      .def("__enter__", [](std::shared_ptr<Share> share) { return share; })
      .def(
          "__exit__",
          [](Share& share, nb::handle type, nb::handle, nb::handle) {
            note_exit(type);
            type.is_none() ? share.wait({}) : share.cancel();
            share.close();
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none());

  m.def(
      "_start_share",
      [](const Runtime& runtime, std::uint64_t items, nb::object function, const Text& chunks,
         std::vector<PlaceRef> places, std::vector<double> work, const Text& name, std::size_t ways,
         const FabricRef& fabric, const Text& scheduler, nb::object results) {
        return Share::start(runtime.session, items, std::move(function),
                            {c_str(name), c_str(chunks), std::move(places), std::move(work), ways,
                             fabric, c_str(scheduler), std::move(results)});
      },
      "runtime"_a, "items"_a, "function"_a, "chunks"_a.none(), "places"_a, "work"_a,
      "name"_a.none(), "ways"_a, "fabric"_a.none(), "scheduler"_a.none(), "results"_a.none());
}

}  // namespace weir::py
