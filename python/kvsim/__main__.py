"""``python -m kvsim`` is ``kvsim``."""

import subprocess
import sys

from kvsim import binary

if __name__ == "__main__":
    try:
        sys.exit(subprocess.run([binary(), *sys.argv[1:]], check=False).returncode)
    except KeyboardInterrupt:
        sys.exit(130)
