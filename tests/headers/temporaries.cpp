// Each of these uses a runtime that is destroyed at the end of the line.
#include <weir/weir.hpp>

int main() {
#ifdef DOMAIN_OF_TEMPORARY
  weir::Place place = weir::Runtime("host").domain(0).place();
#endif
#ifdef QUEUE_OF_TEMPORARY
  weir::Queue queue = weir::Runtime("host").queue();
#endif
}
