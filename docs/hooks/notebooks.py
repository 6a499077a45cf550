"""The notebooks of examples/notebooks as pages: their texts, cells and outputs."""

import base64
import json
from pathlib import Path

from mkdocs.structure.files import File

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"


def on_files(files, config):
    """Adds a page, and its pictures, for each notebook."""
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        parts, pictures = [], {}
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts.append(text)
                continue
            parts.append(f"```python\n{text}\n```")
            for output in cell["outputs"]:
                data = output.get("data", {})
                if "image/png" in data:
                    name = f"{notebook.stem}-{len(pictures)}.png"
                    pictures[name] = base64.b64decode("".join(data["image/png"]))
                    parts.append(f"![What the cell draws]({name})")
                else:
                    said = "".join(output.get("text", data.get("text/plain", "")))
                    parts.append(f"```text\n{said.rstrip()}\n```")
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content="\n\n".join(parts) + "\n"))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files
