"""What several tests share: real processes, proxies that fail on purpose, a browser, and runs with given rewards."""
