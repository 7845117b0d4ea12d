"""Operations that wait: purgatories and the timing wheel behind them."""
