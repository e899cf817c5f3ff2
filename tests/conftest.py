"""Fixtures and hooks are in `shared_fixtures`, whose imports take two seconds: the process that
hands tests to workers runs none, and does without."""


def pytest_configure(config):
    if config.getoption("dist", "no") == "no":  # this process runs tests
        config.pluginmanager.import_plugin("shared_fixtures")
