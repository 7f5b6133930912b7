from core.ui import server


def test_an_app_without_a_database_goes_on_and_says_so(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    address = f"sqlite:///{tmp_path / 'file' / 'app.sqlite'}"
    monkeypatch.setenv("DATABASE_URL", address)
    store = server.store.__wrapped__()
    assert store.runs.find() == []
    assert store.problem.startswith("What is new is forgotten when the app stops.")
    assert "name another one in DATABASE_URL" in store.problem
    store.close()


def test_the_server_itself_is_nobody():
    assert server.visitor() == ""
