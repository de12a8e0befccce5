"""The reference back end as a device."""
