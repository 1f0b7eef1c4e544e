from pydantic import TypeAdapter

from outrider.records.run import RunSettings


def test_settings_survive_json(settings: RunSettings) -> None:
    adapter = TypeAdapter(RunSettings)
    assert adapter.validate_json(adapter.dump_json(settings)) == settings
