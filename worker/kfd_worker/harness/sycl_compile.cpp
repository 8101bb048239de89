// Compiles a device-form SYCL kernel to SPIR-V with the run-time compiler of intel-sycl-rt. Runs in the build box.
//
//   sycl_compile SOURCE OUTPUT OPTION...
//
// Built once by the worker with a plain C++ compiler against the runtime's headers. Messages go to standard error in
// clang's form. Exit codes: 0; 1 for a source that does not compile; 3 when there is no device to compile for.
#include <sycl/sycl.hpp>

#include <cstddef>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace experimental = sycl::ext::oneapi::experimental;

static int compile(const sycl::device &device, const std::string &source, const char *output,
                   const std::vector<std::string> &options) {
  sycl::context context{device};
  auto text = experimental::create_kernel_bundle_from_source(context, experimental::source_language::sycl, source);
  std::string log;
  auto built = experimental::build(text, std::vector<sycl::device>{device},
                                   experimental::properties{experimental::build_options{options},
                                                            experimental::save_log{&log}});
  std::cerr << log;
  std::vector<std::vector<std::byte>> images;
  for (const auto &image : built) images.push_back(image.ext_oneapi_get_backend_content());
  if (images.size() != 1) {
    std::cerr << "1:1:1: error: the source gives " << images.size() << " device images instead of one; it needs at "
              << "least one kernel: a free function with the nd_range_kernel property\n";
    return 1;
  }
  std::ofstream file(output, std::ios::binary);
  file.write(reinterpret_cast<const char *>(images[0].data()), static_cast<std::streamsize>(images[0].size()));
  file.close();
  if (!file) {
    std::cerr << "the output cannot be written: no space left on device\n";
    return 1;
  }
  return 0;
}

int main(int count, char **arguments) {
  if (count < 3) return 3;
  std::ifstream file(arguments[1], std::ios::binary);
  std::stringstream source;
  source << file.rdbuf();
  // One image for all kernels: the plan's launches come from one program.
  std::vector<std::string> options{"-fsycl-device-code-split=off"};
  for (int index = 3; index < count; ++index) options.emplace_back(arguments[index]);
  try {
    sycl::device device{sycl::cpu_selector_v};
    try {
      return compile(device, source.str(), arguments[2], options);
    } catch (const sycl::exception &error) {
      std::cerr << error.what() << "\n";
      return 1;
    }
  } catch (const sycl::exception &error) {
    std::cerr << error.what() << "\n";
    return 3;
  }
}
