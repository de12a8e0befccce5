// Run an exported model from C++, on two threads with an instance each, and compare every bit with
// what Python computed.
//
//     python examples/export/make_models.py out mlp
//     c++ -O2 -std=c++17 -I out -include mlp.h -pthread -o call_from_cpp
//         examples/export/call_from_cpp.cpp out/mlp.so
//     LD_LIBRARY_PATH=out ./call_from_cpp out/mlp.bin
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "arrays.h"

class Model {
  public:
    explicit Model(std::int64_t threads = 0) {
        char problem[512] = "";
        weft_options options = WEFT_OPTIONS;
        options.threads = threads;
        options.message = problem;
        options.message_bytes = sizeof problem;
        weft_instance *made = nullptr;
        const int code = weft_open(&options, &made);
        if (code != WEFT_OK)
            throw std::runtime_error(problem[0] ? problem : weft_error_text(code));
        instance.reset(made);
    }

    void run(const std::vector<weft_tensor> &inputs, std::vector<weft_tensor> &outputs) {
        const int code = weft_run(instance.get(), inputs.data(), std::int64_t(inputs.size()),
                                  outputs.data(), std::int64_t(outputs.size()));
        if (code != WEFT_OK) throw std::runtime_error(weft_message(instance.get()));
    }

  private:
    struct Close {
        void operator()(weft_instance *instance) const { weft_close(instance); }
    };
    std::unique_ptr<weft_instance, Close> instance;
};

static bool runs_equal(const array_file &given) {
    Model model;
    auto tensor = [](const array_file_item &item, void *data) {
        return weft_tensor{data, item.shape, std::int32_t(item.dtype), std::int32_t(item.ndim)};
    };
    std::vector<weft_tensor> inputs;
    for (std::int64_t i = 0; i < given.inputs; i++)
        inputs.push_back(tensor(given.items[i], given.items[i].data));
    bool equal = true;
    for (std::int64_t r = 0; r < given.runs; r++) {
        const array_file_item *expected = &given.items[given.inputs + r * given.outputs];
        std::vector<std::vector<double>> memory;
        std::vector<weft_tensor> outputs;
        for (std::int64_t i = 0; i < given.outputs; i++) {
            memory.emplace_back(expected[i].nbytes / 8 + 1);
            outputs.push_back(tensor(expected[i], memory.back().data()));
        }
        model.run(inputs, outputs);
        for (std::int64_t i = 0; i < given.outputs; i++)
            equal &= std::memcmp(outputs[i].data, expected[i].data, expected[i].nbytes) == 0;
    }
    return equal;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        std::cerr << "usage: " << argv[0] << " MODEL.bin\n";
        return 2;
    }
    if (weft_abi_version() != WEFT_ABI) {
        std::cerr << "the library has another version of the interface\n";
        return 1;
    }
    try {
        const array_file given = read_arrays(argv[1]);
        bool equal[2] = {false, false};
        std::thread other([&] {
            try {
                equal[1] = runs_equal(given);
            } catch (const std::exception &error) {
                std::cerr << error.what() << "\n";
            }
        });
        equal[0] = runs_equal(given);
        other.join();
        const bool all = equal[0] && equal[1];
        std::cout << weft_describe()->name << ": " << (all ? "equal" : "DIFFERENT") << "\n";
        return all ? 0 : 1;
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
