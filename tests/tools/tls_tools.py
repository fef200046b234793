"""Certificates for servers and users that live for one test or one session."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(frozen=True)
class Pem:
    """Files of a certificate and its key."""

    cert: Path
    key: Path

    @property
    def subject(self) -> str:
        """The subject, as servers write it."""
        return x509.load_pem_x509_certificate(self.cert.read_bytes()).subject.rfc4514_string()


@dataclass(frozen=True)
class Shown:
    """An authority, the certificate that it issued for a server, and the fingerprints of both."""

    ca: trustme.CA
    server: trustme.LeafCert

    @property
    def files(self) -> tuple[bytes, bytes]:
        """(certificates, key) that the server presents: its own certificate, then the authority's."""
        chain = (*self.server.cert_chain_pems, self.ca.cert_pem)
        return b"".join(pem.bytes() for pem in chain), self.server.private_key_pem.bytes()

    def write(self, folder: Path, name: str) -> Path:
        """Write the files that the server needs, as ``ca.pem``, ``NAME.pem`` and ``NAME.key``; returns the authority's
        file."""
        for file, content in zip((f"{name}.pem", f"{name}.key"), self.files, strict=True):
            (folder / file).write_bytes(content)
        self.ca.cert_pem.write_to_path(str(folder / "ca.pem"))
        return folder / "ca.pem"

    @property
    def of_server(self) -> str:
        return fingerprint(self.server.cert_chain_pems[0].bytes())

    @property
    def of_authority(self) -> str:
        return fingerprint(self.ca.cert_pem.bytes())


def authority(*names: str) -> Shown:
    """A new authority with a certificate for a server of these names."""
    ca = trustme.CA(organization_name="tests of es-neardupe")
    return Shown(ca, ca.issue_cert(*names))


def fingerprint(pem: bytes) -> str:
    """SHA-256 of a certificate."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.decode())).hexdigest()


def issue(ca: trustme.CA, name: str, folder: Path) -> Pem:
    """A certificate for a user of this name, in two files of a folder."""
    made = ca.issue_cert(f"{name}@users.example", common_name=name)  # Java rejects one without any address
    pem = Pem(folder / f"{name}.pem", folder / f"{name}.key")
    made.cert_chain_pems[0].write_to_path(str(pem.cert))
    made.private_key_pem.write_to_path(str(pem.key))
    return pem


def forged(shown: Shown, name: str) -> tuple[bytes, bytes]:
    """(certificates, key) that can be made without the authority's key: a certificate that names it as its issuer in
    every way, signed by another key, and then the authority's own, which is public."""
    ca = x509.load_pem_x509_certificate(shown.ca.cert_pem.bytes())
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.timezone.utc)
    known = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(name))]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known), critical=False)
        .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    bare = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return made.public_bytes(pem) + shown.ca.cert_pem.bytes(), bare


def locked(key: Path, password: bytes) -> None:
    """Encrypt a key file."""
    read = serialization.load_pem_private_key(key.read_bytes(), None)
    how = serialization.BestAvailableEncryption(password)
    key.write_bytes(read.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how))
