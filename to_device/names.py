"""Names that devices go by, and environment variables that hide them."""

SIMULATED = "sim"  # the simulated accelerator, see to_device.sim
REPORTED = "to-device"  # in a test's report, the property with what the test did
# Environment variables that hide every accelerator. Drivers read them when a program
# first asks for a device, so they must be set earlier.
NO_DEVICES = {
    "CUDA_VISIBLE_DEVICES": "",
    "HIP_VISIBLE_DEVICES": "",
    "ROCR_VISIBLE_DEVICES": "",
    "ONEAPI_DEVICE_SELECTOR": "*:cpu",
}
