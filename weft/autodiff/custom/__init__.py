"""Functions with derivative rules of their own, in JAX's form: `custom_vjp`, `custom_jvp`."""
