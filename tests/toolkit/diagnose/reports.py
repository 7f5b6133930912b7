"""What collect_env printed on a machine with CUDA, a driver and a GPU."""

LINUX = """\
Collecting environment information...
PyTorch version: 2.15.0+cu130
Is debug build: False
CUDA used to build PyTorch: 13.0
ROCm SDK used to build PyTorch: N/A
HIP used to build PyTorch: N/A

OS: Ubuntu 24.04.1 LTS (x86_64)
Python version: 3.12.3 (main) [GCC 13.2.0] (64-bit runtime)
Python platform: Linux-6.8.0-45-generic-x86_64-with-glibc2.39
Is CUDA available: False
GPU models and configuration: GPU 0: NVIDIA GeForce RTX 3090
Nvidia driver version: 580.65.06
Is XPU available: False

Versions of relevant libraries:
[pip3] torch==2.15.0
"""
