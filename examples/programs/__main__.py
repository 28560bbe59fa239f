"""Runs every program of this folder, one after the other."""

import runpy
from pathlib import Path

for file in sorted(Path(__file__).parent.glob("[a-z]*.py")):
    print(f"\n── {file.stem.replace('_', ' ')} {'─' * (96 - len(file.stem))}\n")
    runpy.run_path(str(file), run_name="__main__")
