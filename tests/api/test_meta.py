import pytest

from kubenexus.api.meta import ObjectMeta


@pytest.mark.parametrize(
    ("meta", "key"),
    [
        pytest.param(ObjectMeta(namespace="shop", name="web"), "shop/web", id="with a namespace"),
        pytest.param(ObjectMeta(name="node-1"), "node-1", id="without a namespace"),
    ],
)
def test_the_key_of_an_object_has_its_namespace_if_there_is_one(meta: ObjectMeta, key: str) -> None:
    assert meta.key == key
