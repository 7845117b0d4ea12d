"""The vocabulary of the emulated cluster: values, messages, errors, configs, znodes, versions."""
