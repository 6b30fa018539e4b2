__kernel void roots_kernel(__global double* x) { root_item(x, (int)get_global_id(0)); }
__kernel void potrf_kernel(int n, __global double* a) { potrf_item(n, a); }
__kernel void trsm_kernel(int n, __global double* l, __global double* x) {
  trsm_item(n, l, x, (int)get_global_id(0));
}
__kernel void syrk_kernel(int n, __global double* a, __global double* c) {
  syrk_item(n, a, c, (int)get_global_id(0));
}
__kernel void gemm_kernel(int n, __global double* a, __global double* b, __global double* c) {
  gemm_item(n, a, b, c, (int)get_global_id(0));
}
