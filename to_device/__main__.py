"""The command to-device, as `python -m to_device`."""

import sys

from to_device.cli import main

if __name__ == "__main__":
    sys.exit(main())
