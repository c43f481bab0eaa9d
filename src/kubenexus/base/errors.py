"""Our exceptions. An exception means a bug, bad input or the network; "does not fit" is a Verdict."""


class KubeNexusError(Exception):
    """The root of everything we raise on purpose."""


class Malformed(KubeNexusError, ValueError):
    """An object from outside that cannot be used: says which object, which field and what was expected."""

    def __init__(self, problem: str, *, field: str = "", subject: str = "") -> None:
        self.problem = problem
        self.field = field
        self.subject = subject
        super().__init__(": ".join(part for part in (subject, field, problem) if part))

    def within(self, field: str = "", subject: str = "") -> "Malformed":
        """The same problem seen from further out: `field` is put before the path we have."""
        joint = "" if not field or not self.field or self.field.startswith("[") else "."
        return Malformed(self.problem, field=field + joint + self.field, subject=subject or self.subject)


def truncated_key(key: str) -> str:
    """`namespace/name` as part of a message: however long one of them is, the other can be read."""
    namespace, slash, name = key.partition("/")
    return f"{truncated(namespace)}{slash}{truncated(name)}"


def truncated(text: str) -> str:
    """A text from outside as part of a message: whole if it is short, else its beginning and its length."""
    return text if len(text) <= 256 else f"{text[:256]}... ({len(text)} characters)"
