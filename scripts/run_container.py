#!/usr/bin/env python3
"""Executes the steps of a Containerfile or of an Apptainer definition in copies of an empty Debian
system, where neither podman, docker nor apptainer is. scripts/roots.sh container calls it, as root.

    run_container.py RELEASE BASE CONTEXT FILE [-- ARGUMENT...]

BASE: the folder with the empty system of RELEASE, in which FROM debian:RELEASE and debian:RELEASE-slim
begin. CONTEXT: what COPY . copies. After the build the entry point is run with the ARGUMENTs, and what
%test says. Stages are kept beside BASE until the caller removes them, by the digest of their steps, so
that two files with the same first stage build it once.

Known: FROM ... AS, COPY [--from=], WORKDIR, RUN, ENV, ENTRYPOINT and CMD as lists; Bootstrap: docker,
From, Stage, %files [from], %post, %environment, %runscript, %test, %labels. All else is an error.
"""

import hashlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Arguments: root, working folder, NAME=VALUE..., --, command.
ENTER = r"""set -e
root=$1 folder=$2; shift 2
mount -t sysfs none "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs none "$root/dev/shm"
mkdir -p "$root$folder"
exec chroot "$root" env -i -C "$folder" HOME=/root TERM=dumb "$@" """


class Failure(Exception):
    pass


class Stage:
    """A stage: where it begins, its steps, and what the image does."""

    def __init__(self, image, name):
        self.image, self.name = image, name
        self.steps = []  # ("copy", stage or None, source, target), ("run", folder, environment, script)
        self.environment = {"PATH": PATH}
        self.folder = "/"
        self.entry, self.arguments = [], []
        self.setup = ""  # a script before the entry point and the test
        self.test = ""

    def copy(self, stage, source, target):
        self.steps.append(("copy", stage, source, target))

    def run(self, script):
        self.steps.append(("run", self.folder, dict(self.environment), script))


def expand(text, environment):
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: environment.get(found[1] or found[2], ""), text)


def instructions(text):
    """Yields the instructions of a Containerfile: word, rest."""
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.M)
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            yield word.upper(), rest.strip()


def read_containerfile(text):
    """Returns the stages of a Containerfile."""
    stages = []
    for word, rest in instructions(text):
        stage = stages[-1] if stages else None
        if word == "FROM":
            found = re.fullmatch(r"(\S+)(?: AS (\S+))?", rest, re.I)
            stages.append(Stage(found[1], found[2] or str(len(stages))))
        elif word == "COPY":
            source = re.match(r"--from=(\S+) ", rest)
            paths = rest[source.end():].split() if source else rest.split()
            if len(paths) != 2 or paths[0].startswith("-"):
                raise Failure(f"COPY {rest}: one source and one target are known")
            stage.copy(source and source[1], *paths)
        elif word == "WORKDIR":
            stage.folder = rest
        elif word == "RUN":
            stage.run(" ".join(rest.split()))
        elif word == "ENV":
            for pair in shlex.split(rest):
                name, _, value = pair.partition("=")
                stage.environment[name] = expand(value, stage.environment)
        elif word in ("ENTRYPOINT", "CMD"):
            setattr(stage, "entry" if word == "ENTRYPOINT" else "arguments", json.loads(rest))
        else:
            raise Failure(f"{word} is not known here")
    return stages


def read_definition(text):
    """Returns the stages of an Apptainer definition."""
    text = re.sub(r"^#.*\n", "", text, flags=re.M)
    stages = []
    for part in re.split(r"^(?=Bootstrap:)", text, flags=re.M)[1:]:
        head, *sections = re.split(r"^%", part, flags=re.M)
        header = dict(re.findall(r"^(\w+): *(\S+)", head, re.M))
        if header.get("Bootstrap") != "docker":
            raise Failure(f"Bootstrap: {header.get('Bootstrap')} is not known here")
        stage = Stage(header["From"], header.get("Stage", str(len(stages))))
        stages.append(stage)
        for section in sections:
            title, _, body = section.partition("\n")
            lines = [line.strip() for line in body.splitlines() if line.strip()]
            read_section(stage, title.split(), lines)
    return stages


def read_section(stage, title, lines):
    name, options = title[0], title[1:]
    if name == "files":
        for line in lines:
            source, target = line.split()
            stage.copy(options[1] if options[:1] == ["from"] else None, source, target)
    elif name == "post":
        if lines[0].startswith("cd "):  # as WORKDIR does
            stage.folder = lines.pop(0).removeprefix("cd ")
        stage.run("\n".join(lines))
        stage.folder = "/"
    elif name == "environment":
        stage.setup = "\n".join(lines)
    elif name == "runscript":
        stage.entry = ["/bin/sh", "-ec", "\n".join([stage.setup, *lines]), "runscript"]
    elif name == "test":
        stage.test = "\n".join(lines)
    elif name != "labels":
        raise Failure(f"%{name} is not known here")


class Builder:
    def __init__(self, release, base, context):
        self.release, self.base, self.context = release, base, context
        self.roots = {}  # name of a stage -> its root

    def enter(self, root, folder, environment, command):
        words = [f"{name}={value}" for name, value in environment.items()]
        subprocess.run(["unshare", "-m", "-p", "-f", f"--mount-proc={root}/proc", "bash", "-c", ENTER, "enter",
                        root, folder, *words, *command], check=True)

    def digest(self, stage):
        """Returns what tells a stage from others; the context is the same for all."""
        steps = [(step[0], str(self.roots.get(step[1], step[1])), *step[2:]) if step[0] == "copy" else step
                 for step in stage.steps]
        text = json.dumps([stage.image.removeprefix("docker.io/library/"), steps])
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def build(self, stage):
        image = stage.image.removeprefix("docker.io/library/")
        if image not in (f"debian:{self.release}", f"debian:{self.release}-slim"):
            raise Failure(f"the stage {stage.name} is from {stage.image}, not from debian:{self.release}")
        root = self.base.with_name(f"{self.base.name}.{self.digest(stage)}")
        self.roots[stage.name] = root
        if (root / ".complete").exists():
            print(f"container: stage {stage.name}: the same steps as before", flush=True)
            return
        subprocess.run(["cp", "-a", "--reflink=auto", self.base, root], check=True)
        for step in stage.steps:
            print(f"container: stage {stage.name}: {step[0]} {step[-2] if step[0] == 'copy' else ''} {step[-1]}",
                  flush=True)
            if step[0] == "copy":
                self.copy(root, *step[1:])
            else:
                self.enter(root, step[1], step[2], ["/bin/sh", "-ec", step[3]])
        (root / ".complete").touch()

    def copy(self, root, stage, source, target):
        start = self.roots[stage] if stage else self.context
        where = root / target.lstrip("/")
        where.parent.mkdir(parents=True, exist_ok=True)
        origin = start / source.lstrip("/")
        if origin.is_dir():
            where.mkdir(exist_ok=True)
            origin = f"{origin}/."
        subprocess.run(["cp", "-a", origin, where], check=True)

    def use(self, stage, arguments):
        """Runs the entry point, and the test of the definition."""
        root = self.roots[stage.name]
        self.enter(root, stage.folder, stage.environment, [*stage.entry, *(arguments or stage.arguments)])
        if stage.test:
            self.enter(root, "/", stage.environment, ["/bin/sh", "-ec", f"{stage.setup}\n{stage.test}"])
        size = subprocess.run(["du", "-sxm", root], check=True, capture_output=True, text=True).stdout.split()[0]
        print(f"container: the final stage has {size} MB", flush=True)


def main(release, base, context, file, *arguments):
    text = Path(file).read_text()
    stages = read_definition(text) if file.endswith(".def") else read_containerfile(text)
    builder = Builder(release, Path(base), Path(context))
    try:
        for stage in stages:
            builder.build(stage)
        builder.use(stages[-1], arguments[1:])
    except Failure as failure:
        print(f"container: {file}: {failure}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"container: {file}: a step ended with {error.returncode}", file=sys.stderr)
        return 1
    print(f"container: {file}: all steps and the entry point work", flush=True)
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
