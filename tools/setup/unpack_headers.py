#!/usr/bin/env python3
"""usage: unpack_headers.py WHEEL PREFIX DEST FOLDER...

Unpacks the folders PREFIX/FOLDER of a wheel, and its licences, to DEST/FOLDER.
"""

import pathlib
import sys
import zipfile


def destination(name, prefix, folders):
    if name.endswith("/"):
        return None
    if ".dist-info/licenses/" in name:
        return "licenses/" + pathlib.PurePosixPath(name).name
    for folder in folders:
        if name.startswith(f"{prefix}/{folder}/"):
            return name[len(prefix) + 1 :]
    return None


def main():
    if len(sys.argv) < 5:
        print(__doc__, file=sys.stderr)
        return 2
    wheel, prefix, dest, *folders = sys.argv[1:]
    count = 0
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            to = destination(name, prefix, folders)
            if to is None or ".." in pathlib.PurePosixPath(to).parts:
                continue
            path = pathlib.Path(dest) / to
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))
            count += 1
    print(f"{count} files under {dest}")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
