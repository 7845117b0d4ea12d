"""The suite of each client: how it is fetched and run."""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

from fakekafka.building.archives import unpack

from . import outputs, own, pages
from .kills import copied
from .machine import Served, SuiteError, cache_folder, output, prepare
from .suite import FOLDER, Outcomes, Suite

PROGRAMS = FOLDER / "programs"
_SERVICE_MODULE = '''"""Services that the fixtures start; here the cluster runs already."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    close = stop = open


class SpawnedService(ExternalService):
    pass
'''


def kafka_python(suite: Suite, cluster: Served) -> Outcomes:
    """Its integration tests, from the source distribution, with a cluster that runs already."""
    cache = cache_folder(f"kafka-python-{suite.version}")
    python = cache / "venv" / "bin" / "python"
    archive = cache / f"kafka_python-{suite.version}.tar.gz"
    if not archive.exists():
        wanted = f"kafka-python=={suite.version}"
        choice: list[str | Path] = ["--no-deps", "--no-binary", "kafka-python", wanted]
        prepare([sys.executable, "-m", "pip", "download", "--quiet", *choice, "-d", cache], cache)
    source = cache / archive.name.removesuffix(".tar.gz")
    if not source.exists():
        with tarfile.open(archive) as packed:
            unpack(packed, cache)
        # What the archive leaves out of the tests' own package.
        (source / "test" / "__init__.py").touch()
        (source / "test" / "service.py").write_text(_SERVICE_MODULE)
        (source / "servers" / "3.9.0" / "kafka-bin").mkdir(parents=True)
    requirements = FOLDER / "kafka_python_requirements.txt"
    done = cache / "venv" / "installed"
    if not done.exists() or done.read_bytes() != requirements.read_bytes():
        prepare([sys.executable, "-m", "venv", "--clear", cache / "venv"], cache)
        prepare([python, "-m", "pip", "install", "--quiet", "-r", requirements, archive], cache)
        shutil.copyfile(requirements, done)
    report = cache / "report.xml"
    report.unlink(missing_ok=True)
    command: list[str | Path] = [
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore",
    ]
    # Its own race (`repeated` in kafka_python.toml) is lost about one time in fourteen on a busy
    # machine, and more than twice in a row where threads are slow to start.
    choice = ["--timeout=60", "--reruns=8", "-rR", f"--junit-xml={report}"]
    told = output(
        [*command, *choice, "test/integration"],
        source,
        suite.minutes * 60,
        {"KAFKA_VERSION": "3.9.0", "KAFKA_URI": f"kafka://{cluster.bootstrap}"},
    )
    return outputs.with_reruns(outputs.junit(report), told)


def franz_go(suite: Suite, cluster: Served) -> Outcomes:
    """The tests of its package ``kgo``, from the module's own archive."""
    cache = cache_folder(f"franz-go-{suite.version}")
    source = cache / "source"
    program = cache / "kgo.test"
    if not program.exists():
        if not source.exists():
            module = f"github.com/twmb/franz-go@{suite.version}"
            told = output(["go", "mod", "download", "-json", module], cache, 600)
            folder = next((line for line in told.splitlines() if '"Dir":' in line), "")
            if not folder:
                raise SuiteError(f"go mod download {module} failed:\n{told[-3000:]}")
            shutil.copytree(folder.split('"')[3], source)
            prepare(["chmod", "-R", "u+w", source], cache)
        prepare(["go", "test", "-c", "-o", program, "./pkg/kgo"], source)
    seconds = suite.minutes * 60
    command: list[str | Path] = ["go", "tool", "test2json", program, "-test.v=test2json"]
    return outputs.go_tests(
        output(
            [*command, f"-test.timeout={seconds - 20:.0f}s"],
            source / "pkg" / "kgo",
            seconds,
            {
                "KGO_SEEDS": cluster.bootstrap,
                "KGO_TEST_SCRAM": suite.user,
                "KGO_TEST_SCRAM_SEEDS": cluster.listeners["SASL_PLAINTEXT"],
                "KGO_LOG_LEVEL": "none",
                "KGO_TEST_RECORDS": "20000",
                "KGO_TEST_MAX_TOPIC_PARTS": "7",
            },
        )
    )


def login_of(suite: Suite, cluster: Served) -> dict[str, str | None]:
    """Return how a program has to come in, or nothing where any may."""
    if not suite.mechanism:
        return {}
    user, _, password = suite.user.partition(":")
    return {"ca": cluster.ca_path, "mechanism": suite.mechanism, "user": user, "password": password}


def _jars(name: str, cache: Path) -> Path:
    """Bring what a program's ``pom.xml`` names, with all that it needs."""
    jars = cache / "jars"
    pom = PROGRAMS / name / "pom.xml"
    seen = cache / "pom.xml"
    if not seen.exists() or seen.read_text() != pom.read_text():
        shutil.rmtree(jars, ignore_errors=True)
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        scope = "-DincludeScope=runtime"
        prepare(["mvn", "-q", "-B", "-f", pom, *goal, scope], cache)
        shutil.copy(pom, seen)
    return jars


def _java(main_class: str) -> tuple[Path, list[str | Path]]:
    """Compile the Java programs; gives a folder and the command that runs one of them."""
    cache = cache_folder("java")
    path = f"{cache / 'classes'}:{_jars('java', cache)}/*"
    sources = sorted((PROGRAMS / "java").glob("*.java"))
    prepare(["javac", "-nowarn", "-cp", path, "-d", cache / "classes", *sources], cache)
    return cache, ["java", "-XX:TieredStopAtLevel=1", "-cp", path, main_class]


def java(suite: Suite, cluster: Served) -> Outcomes:
    """A program with Kafka's own client, and the lines of the docs."""
    cache, command = _java("JavaClient")
    settings = cache / "client.properties"
    lines = []
    if login := login_of(suite, cluster):
        lines = [
            "security.protocol=SASL_SSL",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={login['ca']}",
            f"sasl.mechanism={login['mechanism']}",
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{login["user"]}" password="{login["password"]}";',
        ]
    settings.write_text("\n".join(lines))
    written = output([*command, cluster.bootstrap, settings], cache, suite.minutes * 60)
    found = outputs.steps(written)
    return found if login else {**found, **pages.java(cache)}


def java_kills(suite: Suite, cluster: Served) -> Outcomes:
    """A transactional program with Kafka's own client, while brokers die."""
    cache, command = _java("JavaCopy")
    return copied(cluster, command, cache)


def franz_go_kills(suite: Suite, cluster: Served) -> Outcomes:
    """A transactional program with franz-go, while brokers die."""
    cache = cache_folder(f"franz-go-copy-{suite.version}")
    program = cache / "copy"
    prepare(["go", "build", "-o", program, "."], PROGRAMS / "go")
    return copied(cluster, [program], cache)


def kafkajs(suite: Suite, cluster: Served) -> Outcomes:
    """A program with the client of Node.js, whose package ships no tests, and those of the docs."""
    cache = cache_folder(f"kafkajs-{suite.version}")
    if not (cache / "node_modules" / "kafkajs").exists():
        choice: list[str | Path] = ["--no-audit", "--no-fund", f"kafkajs@{suite.version}"]
        prepare(["npm", "install", "--prefix", cache, *choice], cache)
    shutil.copytree(PROGRAMS / "kafkajs", cache, dirs_exist_ok=True)
    login = json.dumps(login_of(suite, cluster))
    command: list[str | Path] = ["node", cache / "client.mjs", cluster.bootstrap, login]
    environment = {"KAFKAJS_NO_PARTITIONER_WARNING": "1"}
    found = outputs.steps(output(command, cache, suite.minutes * 60, environment))
    if not suite.mechanism:
        found = {**found, **pages.kafkajs(cluster, cache)}
    return found


def aiokafka(suite: Suite, cluster: Served) -> Outcomes:
    """A program with aiokafka; its source distribution holds no tests."""
    program = PROGRAMS / "aiokafka_client.py"
    login = json.dumps(login_of(suite, cluster))
    command: list[str | Path] = [sys.executable, program, cluster.bootstrap, login]
    return outputs.steps(output(command, FOLDER, suite.minutes * 60))


def spark(suite: Suite, cluster: Served) -> Outcomes:
    """A program with Spark's source and sink for Kafka."""
    cache = cache_folder(f"spark-{suite.version}")
    jars = ",".join(str(jar) for jar in sorted(_jars("spark", cache).glob("*.jar")))
    command: list[str | Path] = [
        sys.executable,
        PROGRAMS / "spark" / "spark_client.py",
        cluster.bootstrap,
        jars,
    ]
    return outputs.steps(output(command, cache, suite.minutes * 60))


RUNS: dict[str, Callable[[Suite, Served], Outcomes]] = {
    "kafka_python": kafka_python,
    "aiokafka": aiokafka,
    "java": java,
    "kafkajs": kafkajs,
    "aiokafka_secured": aiokafka,
    "java_secured": java,
    "kafkajs_secured": kafkajs,
    "java_kills": java_kills,
    "franz_go_kills": franz_go_kills,
    "franz_go": franz_go,
    "spark": spark,
    "confluent_own": own.confluent,
    "aiokafka_own": own.aiokafka,
    "aiokafka_virtual": own.aiokafka_virtual,
    "kafkajs_own": own.kafkajs,
}
"""Name of a suite to how it is run; the shortest first."""
