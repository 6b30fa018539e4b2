// What a user's program goes on with behind the header.
#include <vector>

int main() {
  weir::Runtime runtime;
  weir::Place place = runtime.domain(0).place();
  weir::Stream stream = place.stream();
}
