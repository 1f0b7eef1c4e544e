import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import httpx2
import pytest
from tests.server.asking import chat
from tests.server.serving import AlphabetModel, api_over, running

from outrider.engine.tokenizer import Tokenizer
from outrider.errors import InvalidSetting
from outrider.server.running import ListenSettings, bind, check_certificate, listen

OPENSSL = shutil.which("openssl")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of localhost, signed by itself, and its key."""
    if OPENSSL is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key,
         "-out", certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return certificate, key


def test_a_certificate_makes_it_https(tokenizer: Tokenizer, certificate: tuple[Path, Path]) -> None:
    trusted = ssl.create_default_context(cafile=str(certificate[0]))
    with (
        running(api_over(AlphabetModel(), tokenizer), certificate=certificate) as server,
        httpx2.Client(base_url=server.url, verify=trusted) as client,
    ):
        assert server.url.startswith("https://")
        assert chat(client, max_tokens=3)["choices"][0]["message"]["content"] == "abc"


def test_a_certificate_is_looked_at_before_anything_else(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    check_certificate(ListenSettings(ssl_certfile=certificate[0], ssl_keyfile=certificate[1]))
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    for chosen in (
        ListenSettings(ssl_certfile=broken, ssl_keyfile=certificate[1]),
        ListenSettings(ssl_certfile=tmp_path / "missing.pem"),
        ListenSettings(ssl_certfile=certificate[0], ssl_keyfile=broken),
        ListenSettings(ssl_keyfile=certificate[1]),
    ):
        with pytest.raises(InvalidSetting, match="--ssl-"):
            check_certificate(chosen)


def test_a_port_in_use_is_told_so() -> None:
    with bind("127.0.0.1", 0) as first:
        listen(first)
        port = first.getsockname()[1]
        with pytest.raises(InvalidSetting, match=f"--port {port}.*in use"):
            bind("127.0.0.1", port)


def test_of_two_servers_that_load_at_once_the_slower_is_told_so() -> None:
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with bind("127.0.0.1", port) as second:
            listen(first)
            with pytest.raises(InvalidSetting, match=f"--port {port}.*in use"):
                listen(second)


def test_clients_are_refused_until_the_server_is_ready() -> None:
    with bind("127.0.0.1", 0) as bound:
        address = bound.getsockname()[:2]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=5)
        listen(bound)
        socket.create_connection(address, timeout=5).close()


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid", "\x00"])
def test_an_address_that_is_not_this_machines_is_told_so(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    if "." in host and not host[0].isdigit():
        monkeypatch.setattr(socket, "getaddrinfo", unknown)  # no network in tests
    with pytest.raises(InvalidSetting, match="--host"):
        bind(host, 0)
