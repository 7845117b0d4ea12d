"""The releases of Kafka that are compared with, and the source of their jars."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HOME_VARIABLE = "FAKEKAFKA_FIDELITY_HOME"


class CannotJudge(Exception):
    """A program or jar that brokers of Kafka need is missing."""


@dataclass(frozen=True)
class Release:
    """A release that stands for one ``kafka_version``."""

    version: str
    scala: str
    logging: tuple[str, str, str] = ("org.slf4j", "slf4j-reload4j", "1.7.36")
    needs_old_java: bool = False
    """True if the release needs to be told that it runs on Java 8, as it knows no later Java."""


RELEASES: dict[str, Release] = {
    "3.9": Release("3.9.1", "2.13"),
    "2.8": Release("2.8.2", "2.13"),
    "1.1": Release("1.1.1", "2.12", needs_old_java=True),
    "0.10": Release(
        "0.10.1.1", "2.12", ("javax.xml.bind", "jaxb-api", "2.3.1"), needs_old_java=True
    ),
}
"""Last release of each line that Maven has, by ``kafka_version``."""

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>fakekafka</groupId><artifactId>kafka-{version}</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_{scala}</artifactId>
<version>{version}</version></dependency>
<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>
<version>{logging}</version></dependency>
</dependencies></project>
"""


def home() -> Path:
    """Return the folder with the jars, outside of the repository."""
    chosen = os.environ.get(HOME_VARIABLE)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen) if chosen else Path(cache) / "fakekafka" / "kafka"


def release(kafka_version: str) -> Release:
    if kafka_version not in RELEASES:
        raise CannotJudge(f"no release stands for {kafka_version!r}; there are {list(RELEASES)}")
    return RELEASES[kafka_version]


def jars(kafka_version: str) -> Path:
    """Return the folder with the jars of a release, which Maven downloads if necessary."""
    wanted = release(kafka_version)
    folder = home() / f"kafka-{wanted.version}"
    if folder.is_dir() and any(folder.glob(f"kafka_*{wanted.version}.jar")):
        return folder
    require("mvn", "Maven, to load Kafka's brokers")
    group, artifact, logging = wanted.logging
    pom = home() / f"pom-{wanted.version}" / "pom.xml"
    pom.parent.mkdir(parents=True, exist_ok=True)
    pom.write_text(
        _POM.format(
            version=wanted.version,
            scala=wanted.scala,
            group=group,
            artifact=artifact,
            logging=logging,
        ),
        encoding="utf-8",
    )
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={folder}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise CannotJudge(f"Maven could not load Kafka {wanted.version}:\n{done.stdout[-2000:]}")
    return folder


def missing(kafka_version: str) -> str:
    """Return the reason why brokers and tools of a release cannot run; empty if they can."""
    if shutil.which("java") is None:
        return "java is not on the PATH"
    wanted = release(kafka_version).version
    if not any((home() / f"kafka-{wanted}").glob(f"kafka_*{wanted}.jar")):
        return f"the jars of Kafka {wanted} are not in {home()}: make oracle-files loads them"
    return ""


def require(program: str, purpose: str) -> None:
    if shutil.which(program) is None:
        raise CannotJudge(f"{program} is not on the PATH: this needs {purpose}")
