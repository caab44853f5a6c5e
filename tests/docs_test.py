"""The documents keep their word: sources are listed, links lead somewhere."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("WEIR_SOURCE_DIR") or
                    pathlib.Path(__file__).resolve().parent.parent)
BUILD = pathlib.Path(os.environ.get("WEIR_BUILD") or ROOT / "build/release")
TEXTS = {".h", ".cc", ".def", ".py", ".sh", ".cmake", ".md", ".toml", ".txt"}
# [RFC8289] and the like: not an index, an optional word or the text of a link.
KEY = re.compile(r"(?<![\w\])`])\[([A-Z][A-Z0-9]{2,}(?:[-.][A-Z0-9]+)*)\](?![(\w])")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"(?<![\w/.{}$*-])((?:adapters|benchmarks|cli|cmake|docs|include/weir|scripts|sim|src"
                  r"|tests)/[\w./-]*\w\.(?:h|cc|def|md|py|sh|cmake|toml|txt))\b(?!\.\w)")


def texts():
    """Yields path and content of every text file of the source tree."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders
                      if name not in {".git", ".cache", "build", "node_modules", "testdata"}]
        for path in (pathlib.Path(folder) / name for name in names):
            if path.suffix in TEXTS:
                yield path, path.read_text(encoding="utf-8")


def prose(text):
    """Markdown without its code."""
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.S | re.M)
    text = re.sub(r"^ {4,}.*$", "", text, flags=re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(markdown):
    """The names that headings get: lower case, no marks, hyphens for spaces."""
    for heading in re.findall(r"^#+\s+(.*?)\s*#*$", markdown, flags=re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


class DocsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.files = dict(texts())
        cls.references = (ROOT / "docs/references.md").read_text(encoding="utf-8")
        cls.keys = re.findall(r"^\*\*\[(.+?)\]\*\*", cls.references, flags=re.M)

    def test_every_cited_source_stands_in_the_references(self):
        missing = []
        for path, text in self.files.items():
            if path == pathlib.Path(__file__).resolve():
                continue
            text = prose(text) if path.suffix == ".md" else text
            for key in KEY.findall(text):
                if key not in self.keys:
                    missing.append(f"{path.relative_to(ROOT)}: [{key}]")
        self.assertEqual(missing, [])

    def test_references_are_sorted_and_stand_once(self):
        self.assertGreater(len(self.keys), 0)
        self.assertEqual(self.keys, sorted(set(self.keys)))

    def test_every_reference_says_what_is_used_of_it(self):
        entries = re.split(r"^(?=\*\*\[)", self.references, flags=re.M)[1:]
        silent = [entry.split("]")[0] for entry in entries if "Used:" not in entry]
        self.assertEqual(silent, [])

    def test_every_relative_link_leads_to_a_file_and_heading(self):
        broken = []
        for path, text in self.files.items():
            if path.suffix != ".md":
                continue
            for link in LINK.findall(prose(text)):
                if re.match(r"[a-z]+:", link):
                    continue
                name, _, anchor = link.partition("#")
                target = (path.parent / name).resolve() if name else path
                found = target.exists() and (
                    not anchor or anchor in anchors(target.read_text(encoding="utf-8")))
                if not found:
                    broken.append(f"{path.relative_to(ROOT)}: {link}")
        self.assertEqual(broken, [])

    def test_every_file_that_is_spoken_of_is_there(self):
        broken = []
        for path, text in self.files.items():
            if path == pathlib.Path(__file__).resolve():
                continue
            for name in PATH.findall(text):
                if "NAME" not in name and not (ROOT / name).exists():
                    broken.append(f"{path.relative_to(ROOT)}: {name}")
        self.assertEqual(broken, [])

    def test_the_policy_in_the_readme_is_right(self):
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        found = re.search(r"^    # shop\.toml\n((?: {4}.*\n|\n)+)", readme, flags=re.M)
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as policy:
            policy.write(re.sub(r"^ {4}", "", found[1], flags=re.M))
            policy.flush()
            done = subprocess.run([BUILD / "cli/weir", "check", policy.name],
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
