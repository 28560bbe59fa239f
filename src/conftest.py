"""Examples in docstrings that need PyTorch, which the tests do without."""

from importlib.util import find_spec

collect_ignore = ["conftest.py", *([] if find_spec("torch") else ["riesz/importing/from_torch.py"])]
