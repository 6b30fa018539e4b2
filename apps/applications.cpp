#include "asian_option/asian_option.hpp"
#include "cholesky/cholesky.hpp"
#include "common/workload.hpp"
#include "dct/dct.hpp"
#include "dotproduct/dotproduct.hpp"
#include "evolution/evolution.hpp"
#include "face_detection/face_detection.hpp"
#include "gene_alignment/gene_alignment.hpp"
#include "hotspot/hotspot.hpp"
#include "kmeans/kmeans.hpp"
#include "laplacian/laplacian.hpp"
#include "lu/lu.hpp"
#include "matmul/matmul.hpp"
#include "nn/nn.hpp"
#include "prefixsum/prefixsum.hpp"
#include "raster/raster.hpp"
#include "reyes/reyes.hpp"
#include "rtm/rtm.hpp"
#include "scatter/scatter.hpp"
#include "sparse_cholesky/sparse_cholesky.hpp"
#include "srad/srad.hpp"
#include "stencil/stencil.hpp"
#include "wave/wave.hpp"

namespace weir::apps {

std::vector<std::unique_ptr<Application>> make_applications() {
  std::vector<std::unique_ptr<Application>> all;
  all.push_back(make_asian_option());
  all.push_back(make_cholesky());
  all.push_back(make_dct());
  all.push_back(make_dotproduct());
  all.push_back(make_evolution());
  all.push_back(make_face_detection());
  all.push_back(make_gene_alignment());
  all.push_back(make_hotspot());
  all.push_back(make_kmeans());
  all.push_back(make_laplacian());
  all.push_back(make_lu());
  all.push_back(make_matmul());
  all.push_back(make_nn());
  all.push_back(make_prefixsum());
  all.push_back(make_raster());
  all.push_back(make_reyes());
  all.push_back(make_rtm());
  all.push_back(make_scatter());
  all.push_back(make_sparse_cholesky());
  all.push_back(make_srad());
  all.push_back(make_stencil());
  all.push_back(make_wave());
  return all;
}

}  // namespace weir::apps
